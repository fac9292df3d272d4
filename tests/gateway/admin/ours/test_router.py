from __future__ import annotations

import pytest
from fastapi import FastAPI

from gateway.admin.ours.router import OURS
from tests.support.admin import ELSEWHERE, managed_gateway


@pytest.mark.asyncio
async def test_no_route_answers_somebody_that_did_not_come_in(tmp_path):
    api = FastAPI()
    api.include_router(OURS)
    paths = api.openapi()["paths"]
    assert "/api/lmq/queues" in paths
    async with managed_gateway(tmp_path, auth=None, peer=ELSEWHERE) as (_, client):
        for path, methods in paths.items():
            for method in methods:
                assert (await client.request(method, path)).status_code == 401, path
