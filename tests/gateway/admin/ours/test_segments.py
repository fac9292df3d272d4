from __future__ import annotations

import asyncio
import time

import pytest

from core.log_file import LogFile
from core.settings import RetentionSettings, StoreSettings
from gateway.admin.ours import segments
from gateway.admin.ours.light_queues import name_of
from tests.support.admin import declare, make_client, make_view, managed_gateway
from tests.support.admin_clients import publish
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio

KIB = 1 << 10
BODY = "x" * (20 * KIB)
SMALL = StoreSettings(segment_bytes=64 * KIB)
AT_ONCE = RetentionSettings.model_construct(age_hours=0, bytes_max=None)  # what is full is past its time


async def look_until(gateway, client, found):
    """Return the list when it is as `found` says, while retention runs."""
    gateway.store.retention.reload(AT_ONCE)
    for _ in range(2_000):
        gateway.broker.retire(time.time_ns() // 1_000_000 + 1_000)
        told = (await client.get("/api/lmq/segments")).json()
        if found(told):
            return told
        await asyncio.sleep(0.005)
    raise AssertionError(told)


async def test_files_of_the_log_are_told_with_the_queue_that_they_are_kept_for(tmp_path):
    async with managed_gateway(tmp_path, store=SMALL) as (gateway, client):
        assert (await client.get("/api/lmq/segments")).json() == []
        declare(gateway, "forgotten", "empty")
        for _ in range(8):
            await publish(client, "amq.default", "forgotten", BODY)
        fresh = (await client.get("/api/lmq/segments")).json()
        assert len(fresh) >= 3
        assert [one["first_offset"] for one in fresh] == [64 * KIB * number for number in range(len(fresh))]
        assert [int(one["name"]) for one in fresh] == [one["first_offset"] for one in fresh]
        assert {(one["due"], one["held"], one["needed"], one["held_for"]) for one in fresh} == {
            (False, False, None, None)
        }
        assert [one["newest"] for one in fresh] == [False] * (len(fresh) - 1) + [True]
        assert all(one["bytes"] <= one["size"] == 64 * KIB for one in fresh)

        told = await look_until(gateway, client, lambda told: all(one["held_for"] for one in told[:-1]))
        assert [one["name"] for one in told] == [one["name"] for one in fresh]
        for one in told[:-1]:
            assert (one["due"], one["held"]) == (True, True)
            assert one["needed"] > 0
            assert one["held_for"] == [{"door": "amqp", "name": "forgotten", "vhost": "/"}]
        assert (told[-1]["due"], told[-1]["held_for"]) == (False, None)
        assert told[1]["first_written_at_ms"] <= told[1]["last_written_at_ms"]
        assert told[0]["last_written_at_ms"] == told[1]["first_written_at_ms"]

        page = (await client.get("/api/lmq/segments?page=1&page_size=1&sort=first_offset&sort_reverse=true")).json()
        assert (page["total_count"], page["item_count"]) == (len(told), 1)
        assert page["items"][0]["name"] == told[-1]["name"]


class SomeFiles:
    """Four files, all due; of the first and the last something is needed, by five queues each."""

    def tell(self):
        for number, needed in enumerate((5, 0, None, 5)):
            yield LogFile(number, 1, 1, None, None, is_newest=False, is_due=True, needed=needed)

    def holders_of(self, base):
        yield from () if base == 2 else (None, 0, None, 1, 2, 3, 4)


async def test_three_queues_are_named_and_none_where_it_took_too_many_looks(tmp_path, monkeypatch):
    async with managed_gateway(tmp_path) as (gateway, _):
        for number in range(5):
            gateway.broker.intern_queue(b"%%LMQ%%mqtt%%q%d" % number)
        view = make_view(gateway)
        view.log_files = SomeFiles()
        async with make_client(view) as client:
            told = (await client.get("/api/lmq/segments")).json()
            named = [one["held_for"] and [queue["name"] for queue in one["held_for"]] for one in told]
            assert (
                named[0] == named[3] == [name_of(view.broker, view.broker.queue_key(number))[1] for number in range(3)]
            )
            assert named[1:3] == [None, []]
            monkeypatch.setattr(segments, "LOOKS_MAX", 5)
            told = (await client.get("/api/lmq/segments")).json()
            assert [one["held_for"] is None for one in told] == [False, True, False, True]
            view.log_files = None
            assert (await client.get("/api/lmq/segments")).json() == []


async def test_it_is_for_those_that_see_all(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for tag in ("management", "policymaker", "monitoring"):
            await client.put(f"/api/users/{tag}", json={"password_hash": quick_hash("x"), "tags": tag})
            async with make_client(make_view(gateway), auth=(tag, "x")) as asked:
                for path in ("/api/lmq/segments", "/api/lmq/held"):
                    assert (await asked.get(path)).status_code == (200 if tag == "monitoring" else 401), path
