from __future__ import annotations

import pytest

from tests.support.admin import declare, managed_gateway


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "ü ?#", "%"])
async def test_a_name_in_a_path_may_have_any_character(tmp_path, name):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, name)
        escaped = "".join(f"%{octet:02X}" for octet in name.encode())
        assert (await client.get(f"/api/queues/%2F/{escaped}")).json()["name"] == name
