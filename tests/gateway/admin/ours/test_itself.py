from __future__ import annotations

import logging
import tomllib

import pytest

from gateway.logs import set_up_logs, tell
from tests.support.admin import ELSEWHERE, make_client, make_view, managed_gateway
from tests.support.gateway import running_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio


@pytest.mark.usefixtures("kept_logs", "capsys")
async def test_log_lines_are_told_once_each(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        set_up_logs("info", "text")
        logger = logging.getLogger("gateway.x")

        async def look(since):
            """Return our own lines, without their moments, and how many there were in all."""
            found = (await client.get("/api/lmq/logs", params={"since": since})).json()
            return [line.split(" ")[-1] for line in found["lines"] if "gateway.x" in line], found["written"]

        tell(logger, "one")
        told, written = await look(0)
        assert told == ["one"]
        tell(logger, "two")
        told, written = await look(written)
        assert told == ["two"]
        assert (await look(written))[0] == []
        assert (await look(9_999))[0] == ["one", "two"]  # the gateway was started again


async def test_settings_are_told_without_secrets(tmp_path):
    secret = quick_hash("pw")
    rights = {"users": {"ann": {"password_hash": secret}}}
    async with managed_gateway(tmp_path, rights=rights) as (_, client):
        text = (await client.get("/api/lmq/settings")).json()["text"]
        assert tomllib.loads(text)["mqtt"]["listen"].endswith(":0")
        assert secret not in text


async def test_both_are_for_administrators(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        assert (await client.get("/api/lmq/logs")).status_code == 401
        assert (await client.get("/api/lmq/settings")).status_code == 401


@pytest.mark.usefixtures("kept_logs", "capsys")
async def test_how_much_the_log_says_changes_at_once_for_all_or_one(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        set_up_logs("info", "text")

        async def say(level, logger=""):
            return (await client.put("/api/lmq/log-levels", json={"level": level, "logger": logger})).json()

        assert await say("debug", "gateway.mqtt") == {"level": "info", "loggers": {"gateway.mqtt": "debug"}}
        assert logging.getLogger("gateway.mqtt.handler").isEnabledFor(logging.DEBUG)
        assert not logging.getLogger("gateway.amqp.handler").isEnabledFor(logging.DEBUG)
        assert await say("default", "gateway.mqtt") == {"level": "info", "loggers": {}}
        assert (await say("error"))["level"] == "error"
        assert (await client.get("/api/lmq/log-levels")).json() == {"level": "error", "loggers": {}}
        assert (await say("default"))["level"] == "info"
        answer = await client.put("/api/lmq/log-levels", json={"level": "loud"})
        assert answer.status_code == 400


class AskedBroker:
    """A broker that notes when it is asked to let go of segments, of which it says that 7 went."""

    def __init__(self, broker):
        self.broker = broker
        self.asked = []

    def __getattr__(self, name):
        return getattr(self.broker, name)

    def retire(self, now_ms):
        self.asked.append(now_ms)
        return 7


async def test_retention_runs_when_it_is_asked_for(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        view = make_view(gateway)
        view.broker = AskedBroker(gateway.broker)
        async with make_client(view) as client:
            assert (await client.post("/api/lmq/retention")).json()["segments"] == 7
        assert len(view.broker.asked) == 1


async def test_a_page_is_told_for_whom_it_is(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/users/ann", json={"password_hash": quick_hash("x"), "tags": "management"})
        view = make_view(gateway)
        async with make_client(view, auth=("ann", "x")) as ann, make_client(view, auth=None) as nobody:
            assert (await ann.get("/api/lmq/caller")).json() == {"name": "ann", "tags": ["management"]}
            assert (await nobody.get("/api/lmq/caller")).json() == {"name": "", "tags": ["monitoring"]}
        async with make_client(view, auth=None, peer=ELSEWHERE) as stranger:
            assert (await stranger.get("/api/lmq/caller")).status_code == 401
