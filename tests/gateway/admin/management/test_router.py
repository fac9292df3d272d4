from __future__ import annotations

import pytest
from fastapi import FastAPI

from gateway.admin.management.router import MANAGEMENT
from tests.support.admin import ELSEWHERE, managed_gateway


def _routes():
    api = FastAPI()
    MANAGEMENT.add_to(api)
    paths = api.openapi()["paths"]
    return [(method, path) for path, methods in paths.items() for method in methods]


def test_every_route_is_below_the_path_of_rabbitmqs():
    assert ("get", "/api/overview") in _routes()
    assert all(path.startswith("/api/") for _, path in _routes())


@pytest.mark.asyncio
async def test_no_route_answers_somebody_that_did_not_come_in(tmp_path):
    async with managed_gateway(tmp_path, auth=None, peer=ELSEWHERE) as (_, client):
        for method, path in _routes():
            assert (await client.request(method, path)).status_code == 401, path
