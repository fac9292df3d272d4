from __future__ import annotations

import pytest

from core.errors import FlushFailedError
from gateway.admin.management.keeping import keep

pytestmark = pytest.mark.asyncio


class Broker:
    def __init__(self, error):
        self.error = error

    def when_kept(self, then):
        then(self.error)
        then(self.error)  # of a request that is not there any more


async def test_waits_until_changes_are_safe_or_the_disk_refuses_them():
    await keep(Broker(None))
    with pytest.raises(FlushFailedError):
        await keep(Broker(FlushFailedError("no")))
