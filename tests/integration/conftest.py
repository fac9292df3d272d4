from __future__ import annotations

import pytest
import pytest_asyncio

from tests.support.engines import MAKERS, stand_on
from tests.support.gateway import running_gateway


@pytest.fixture(params=MAKERS)
def engine(request):
    """Have gateways of this process stand on the embedded engine, and on one that answers late."""
    stand_on(request)


@pytest_asyncio.fixture
async def gateway(tmp_path, engine):
    """A gateway in this process."""
    async with running_gateway(tmp_path) as gateway:
        yield gateway
