from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from gateway.admin.same_site import is_of_other_site, is_this_machine
from tests.support.admin import declare, managed_gateway

OUR_PAGE = {"host": "lmq:15672", "origin": "http://lmq:15672"}


@pytest.mark.parametrize(
    ("headers", "is_other"),
    [
        ({"host": "lmq:15672"}, False),  # a program
        (OUR_PAGE, False),
        ({**OUR_PAGE, "origin": "http://evil.example"}, True),
        ({**OUR_PAGE, "origin": "http://lmq:8080"}, True),
        ({**OUR_PAGE, "origin": "null"}, True),
        ({"host": "lmq:15672", "sec-fetch-site": "same-origin"}, False),
        ({"host": "lmq:15672", "sec-fetch-site": "none"}, False),
        ({"host": "lmq:15672", "sec-fetch-site": "cross-site"}, True),
        ({**OUR_PAGE, "sec-fetch-site": "same-site"}, True),
    ],
)
def test_who_asks_is_read_from_what_browsers_say(headers, is_other):
    assert is_of_other_site(Headers(headers)) is is_other


@pytest.mark.asyncio
async def test_a_page_of_another_site_changes_nothing_and_our_own_asks_on(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        evil = {"origin": "http://evil.example"}
        refused = await client.post("/api/queues/%2F/q/get", json={}, headers=evil)
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
        assert (await client.get("/api/overview", headers=evil)).status_code == 200  # which its page cannot read
        assert (await client.post("/api/overview", headers={"origin": "http://127.0.0.1"})).status_code == 405


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("lmq.localhost", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        (None, False),
    ],
)
def test_a_name_that_a_site_could_give_us_is_not_this_machine(host, is_ours):
    assert is_this_machine(host) is is_ours


@pytest.mark.asyncio
async def test_a_site_whose_name_leads_to_this_machine_is_asked_for_a_login(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        assert (await client.get("/api/overview")).status_code == 200
        assert (await client.get("/api/overview", headers={"host": "evil.example"})).status_code == 401
