from __future__ import annotations

import pytest

from tests.support.rocketmq_door import DoorSite


@pytest.fixture
def site(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "data", make_engine=engine_maker)
    yield site
    site.close()


@pytest.fixture
def peer(site):
    return site.connect()
