from __future__ import annotations

import pytest

from tests.support.rocketmq_door import DoorSite


@pytest.fixture
def site(tmp_path):
    site = DoorSite(tmp_path / "data")
    yield site
    site.close()


@pytest.fixture
def peer(site):
    return site.connect()
