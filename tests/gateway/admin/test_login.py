from __future__ import annotations

import asyncio
import base64

import httpx
import pytest

from gateway.auth.users import hash_password
from gateway.settings.listen import AdminSettings
from gateway.settings.models import AuthSettings, UserSettings
from tests.support.admin import ELSEWHERE, GUEST, HERE, make_client, make_view, managed_gateway
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio

WORD = hash_password("secret")
USERS = AuthSettings(
    users={
        "root": UserSettings(password_hash=WORD, tags=("administrator",)),
        "device": UserSettings(password_hash=WORD),
    }
)
LOCKED = AuthSettings(amqp_guest=False, admin_anonymous=False)

WHO = {
    "nobody on this machine": (AuthSettings(), None, HERE, 200),
    "nobody on this machine, where all have to log in": (LOCKED, None, HERE, 401),
    "nobody behind a proxy": (AuthSettings(behind_proxy=True), None, HERE, 401),
    "nobody elsewhere": (AuthSettings(), None, ELSEWHERE, 401),
    "guest on this machine": (AuthSettings(), GUEST, HERE, 200),
    "guest elsewhere": (AuthSettings(), GUEST, ELSEWHERE, 401),
    "guest with another password": (AuthSettings(), ("guest", "x"), HERE, 401),
    "guest, where there is none": (LOCKED, GUEST, HERE, 401),
    "a user elsewhere": (USERS, ("root", "secret"), ELSEWHERE, 200),
    "a user with another password": (USERS, ("root", "x"), HERE, 401),
    "a user without a tag": (USERS, ("device", "secret"), HERE, 401),
}


@pytest.mark.parametrize("case", WHO)
async def test_who_is_answered(tmp_path, case):
    auth, said, peer, code = WHO[case]
    async with managed_gateway(tmp_path, auth=said, peer=peer, rights=auth) as (_, client):
        answer = await client.get("/api/overview")
        assert answer.status_code == code
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/metrics")).status_code == 200
        if code == 401:
            assert answer.headers["www-authenticate"].startswith("Basic")
            assert answer.json()["error"] == "not_authorized"


async def test_all_have_to_log_in_where_the_door_listens_beyond_this_machine(tmp_path):
    said = [ANY_PORT, "0.0.0.0:0", {"address": "0.0.0.0:0", "authenticators": ["anonymous", "guest"]}]
    async with (
        running_gateway(tmp_path, admin=AdminSettings(listen=said)) as gateway,
        httpx.AsyncClient(timeout=20) as client,
    ):
        ports = [int(line.rpartition(":")[2]) for line in gateway.lines() if line.startswith("listening admin ")]
        codes = []
        for port in ports:
            base = f"http://127.0.0.1:{port}"
            asked = [await client.get(f"{base}{path}") for path in ("/api/overview", "/healthz", "/metrics")]
            asked.append(await client.get(f"{base}/api/overview", auth=GUEST))
            codes.append([answer.status_code for answer in asked])
        assert codes == [[200] * 4, [401, 200, 200, 200], [200] * 4]


@pytest.mark.parametrize("said", ["203.0.113.7", "127.0.0.1, 203.0.113.7"])
async def test_who_comes_by_a_web_server_on_this_machine_is_who_that_says_last(tmp_path, said, monkeypatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # of another program of the same machine: no setting of ours
    async with (
        running_gateway(tmp_path, admin=AdminSettings(listen=ANY_PORT)) as gateway,
        httpx.AsyncClient(timeout=20) as client,
    ):
        url = "http://{}:{}/api/overview".format(*gateway.listening["admin"])
        assert (await client.get(url)).status_code == 200
        for login in (None, GUEST):
            answer = await client.get(url, auth=login, headers={"X-Forwarded-For": said})
            assert answer.status_code == 401


async def test_who_asks_is_told_who_it_is(tmp_path):
    async with running_gateway(tmp_path, auth=USERS) as gateway:
        view = make_view(gateway)
        async with make_client(view, auth=("root", "secret")) as client:
            assert (await client.get("/api/whoami")).json() == {
                "name": "root",
                "tags": ["administrator"],
                "is_internal_user": True,
            }
        async with make_client(view, auth=None) as client:
            answer = await client.get("/api/whoami")
            assert (answer.status_code, answer.json()["reason"]) == (401, "log in for this")


@pytest.mark.parametrize("said", ["", "Basic", "Basic ???", "Bearer abc", "Basic " + base64.b64encode(b"ann").decode()])
async def test_a_login_that_is_not_well_formed_is_refused(tmp_path, said):
    async with running_gateway(tmp_path) as gateway, make_client(make_view(gateway), auth=None) as client:
        answer = await client.get("/api/overview", headers={"Authorization": said})
        assert (answer.status_code, answer.json()["error"]) == (401, "not_authorized")


async def test_a_login_that_gives_up_takes_no_check(tmp_path):
    async with managed_gateway(tmp_path, auth=("root", "other"), rights=USERS) as (_, client):
        task = asyncio.create_task(client.get("/api/overview"))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.get("/api/overview")).status_code == 401
