from __future__ import annotations

import pytest

from tests.support.admin import managed_gateway


@pytest.mark.asyncio
async def test_what_is_not_there_is_told_in_rabbitmqs_form(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        answer = await client.get("/api/queues/%2F/none")
        assert (answer.status_code, answer.json()) == (
            404,
            {"error": "Object Not Found", "reason": "no queue 'none' in vhost '/'"},
        )
        assert (await client.get("/api/queues/none")).json()["reason"] == "no vhost 'none'"
        assert (await client.get("/api/exchanges/%2F/none")).status_code == 404
        assert (await client.get("/nowhere")).json() == {"detail": "Not Found"}
