"""A gateway of its own for each test that needs one."""

from __future__ import annotations

import pytest_asyncio

from gateway.demo.child import start_gateway


@pytest_asyncio.fixture
async def gateway(tmp_path):
    async with start_gateway(tmp_path / "data", tmp_path / "gateway.log") as running:
        yield running
