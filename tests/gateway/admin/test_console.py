from __future__ import annotations

import re

import pytest

from gateway.admin.console import POLICY, read_assets
from tests.support.admin import ELSEWHERE, managed_gateway

pytestmark = pytest.mark.asyncio

IMPORT = re.compile(r'^import .* from "(.+)";$', re.MULTILINE)


async def test_the_console_is_at_the_root_with_all_that_it_loads(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        page = await client.get("/")
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        for path in re.findall(r'(?:src|href)="(console/[^"]+)"', page.text):
            assert (await client.get(f"/{path}")).status_code == 200, path
        script = await client.get("/console/console.js")
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        assert script.headers["content-security-policy"] == POLICY
        assert (await client.get("/console/none.js")).status_code == 404
        assert (await client.get("/console/..%2Fapi.py")).status_code == 404


async def test_what_a_browser_has_already_is_not_sent_again(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        tag = (await client.get("/")).headers["etag"]
        again = await client.get("/", headers={"if-none-match": tag})
        assert (again.status_code, again.content) == (304, b"")


async def test_each_script_finds_what_it_imports_and_nothing_comes_from_elsewhere():
    assets = read_assets()
    scripts = {path: asset.body.decode() for path, asset in assets.items() if path.endswith(".js")}
    for path, text in scripts.items():
        for imported in IMPORT.findall(text):
            folder = path.rpartition("/")[0]
            there = imported.removeprefix("./")
            if imported.startswith("../"):
                folder, there = folder.rpartition("/")[0], imported.removeprefix("../")
            assert f"{folder}/{there}".lstrip("/") in assets, f"{path} imports {imported}"
        assert "innerHTML" not in text, path  # text from outside is only ever text
    for path, asset in assets.items():
        hosts = set(re.findall(rb"https?://[^\s\"'<>/]+", asset.body))
        assert hosts <= {b"http://www.w3.org"}, path


async def test_the_stream_asks_for_a_login_where_the_rest_does(tmp_path):
    async with managed_gateway(tmp_path, auth=None, peer=ELSEWHERE) as (_, client):
        assert (await client.get("/api/lmq/live")).status_code == 401


@pytest.mark.asyncio
async def test_the_api_is_described_for_people_without_another_host(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        page = await client.get("/api/docs")
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        assert "http" not in page.text.replace("http-equiv", "").replace("HTTP", "")
        assert (await client.get("/console/docs.js")).status_code == 200
        paths = (await client.get("/api/openapi.json")).json()["paths"]
        assert {"/api/queues/{vhost}/{name}", "/api/lmq/queues"} <= paths.keys()


@pytest.mark.asyncio
async def test_the_page_is_asked_for_by_head_too(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        page, head = await client.get("/"), await client.head("/")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["etag"] == page.headers["etag"]
