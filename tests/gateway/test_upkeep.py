from __future__ import annotations

import asyncio
import logging

import pytest

from core.settings import RetentionSettings, StoreSettings
from gateway.upkeep import Every
from tests.support.gateway import running_gateway
from tests.support.store import publish


def test_interval_work_is_due_again_after_each_time():
    calls = []
    every = Every(500, calls.append, 1_000)
    assert every.next_deadline_ms() == 1_500
    every.on_deadline(1_700)
    assert calls == [1_700]
    assert every.next_deadline_ms() == 2_200


@pytest.mark.asyncio
async def test_disk_that_gets_low_is_said_once_at_the_start_and_the_end_and_retention_runs(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    small = StoreSettings(segment_bytes=64 * 1024, retention=RetentionSettings(bytes_max=1 << 20))
    free = 1 << 40
    async with running_gateway(tmp_path, free_bytes=lambda: free, store=small) as gateway:
        route = gateway.broker.route_topic(b"a")
        for _ in range(50):
            publish(gateway.store, route, b"x" * 60_000, now_ms=gateway.clock.now_ms())
        segments = len(list((tmp_path / "commitlog").iterdir()))
        async with asyncio.timeout(20):
            while len(list((tmp_path / "index").glob("0*"))) < segments - 1:
                await asyncio.sleep(0.01)
        for free in (1_000, 1 << 40):  # read by the gateway
            async with asyncio.timeout(20):
                while gateway.broker.room.is_low == (free > 1_000):
                    await asyncio.sleep(0.01)
        assert len(list((tmp_path / "commitlog").iterdir())) < segments / 2
    told = [record for record in caplog.records if "publishers" in record.getMessage()]
    assert [record.levelname for record in told] == ["WARNING", "INFO"]
    assert f"free_bytes=1000 disk_free_bytes_min={256 << 20} data_dir={tmp_path}" in told[0].getMessage()
    assert "publishers_held=0" in told[1].getMessage()
