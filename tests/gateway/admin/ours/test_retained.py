from __future__ import annotations

import pytest

from tests.support.admin import managed_gateway
from tests.support.admin_clients import retain

pytestmark = pytest.mark.asyncio


async def test_retained_messages_are_told_by_topic(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await retain(gateway, {"plant/1": b"on", "plant/2": b"off", "door": b"open"})
        found = (await client.get("/api/lmq/retained?filter=plant/%2B")).json()
        assert [(one["topic"], one["payload_bytes"]) for one in found] == [("plant/1", 2), ("plant/2", 3)]
        assert (await client.get("/api/lmq/retained?page=1&name=DOOR")).json()["filtered_count"] == 1
        shown = (await client.get("/api/lmq/retained/plant%2F1")).json()
        assert (shown["topic"], shown["body"]) == ("plant/1", "on")
        assert (await client.get("/api/lmq/retained/none")).status_code == 404
