from __future__ import annotations

import pytest
from fastapi import HTTPException

from core.errors import DiskFullError, FlushFailedError
from gateway.admin.management import keeping
from gateway.admin.management.keeping import keep

pytestmark = pytest.mark.asyncio


class Broker:
    def __init__(self, error):
        self.error = error

    def when_kept(self, then):
        then(self.error)
        then(self.error)  # of a request that is not there any more

    def check_commits(self):
        pass


class FullBroker:
    """Has no room: from the beginning, or from the second time on that it is asked."""

    def __init__(self, looks):
        self.looks = looks

    def when_kept(self, then):
        pass

    def check_commits(self):
        self.looks -= 1
        if self.looks < 0:
            raise DiskFullError("definitions.db")


@pytest.mark.parametrize("looks", [0, 1])
async def test_does_not_wait_for_room_on_the_disk(looks, monkeypatch):
    monkeypatch.setattr(keeping, "LOOK_S", 0.01)
    with pytest.raises(HTTPException) as caught:
        await keep(FullBroker(looks))
    assert caught.value.status_code == 503
    assert "kept when the disk has room again: no space left for definitions.db" in caught.value.detail["reason"]


async def test_waits_until_changes_are_safe_or_the_disk_refuses_them():
    await keep(Broker(None))
    with pytest.raises(FlushFailedError):
        await keep(Broker(FlushFailedError("no")))
