from __future__ import annotations

import pytest

from core.errors import FlushFailedError
from gateway.bridges.remote_filters import RemoteFilters
from gateway.settings.bridges import BridgeSettings
from tests.gateway.bridges.conftest import OFF
from tests.support.gateway import running_gateway


@pytest.mark.asyncio
async def test_what_a_bridge_asked_for_outlives_the_process_and_holds_for_one_broker(tmp_path):
    async with running_gateway(tmp_path, **OFF) as gateway:
        bridge = BridgeSettings(address="127.0.0.1:1", topics=[{"filter": "a"}])
        await RemoteFilters(gateway.broker).keep("one", "gw1@h:1", {"b", "a"})
    async with running_gateway(tmp_path, **OFF, bridges={"one": bridge}) as gateway:
        kept = RemoteFilters(gateway.broker)
        assert kept.find("one", "gw1@h:1") == {"a", "b"}
        assert kept.find("one", "gw2@h:1") == kept.find("two", "gw1@h:1") == set()


@pytest.mark.asyncio
async def test_bridges_that_are_no_more_are_forgotten(tmp_path):
    async with running_gateway(tmp_path, **OFF) as gateway:
        kept = RemoteFilters(gateway.broker)
        await kept.keep("one", "p", {"a"})
        await kept.keep("two", "p", {"b"})
        kept.forget_others(["two"])
        assert (kept.find("one", "p"), kept.find("two", "p")) == (set(), {"b"})
        await kept.keep("two", "p", [])
        assert kept.find("two", "p") == set()


@pytest.mark.asyncio
async def test_a_disk_that_keeps_nothing_is_told(tmp_path):
    async with running_gateway(tmp_path, **OFF) as gateway:
        kept = RemoteFilters(gateway.broker)
        kept._when_kept = lambda then: then(FlushFailedError("x"))
        with pytest.raises(FlushFailedError):
            await kept.keep("one", "p", {"a"})
