from __future__ import annotations

import pytest_asyncio

from tests.support.gateway import running_gateway


@pytest_asyncio.fixture
async def gateway(tmp_path):
    """A gateway in this process."""
    async with running_gateway(tmp_path) as gateway:
        yield gateway
