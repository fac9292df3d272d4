from __future__ import annotations

import pytest

from tests.support.mqtt_door import World


@pytest.fixture(params=[False, True], ids=["with others", "alone"])
def make_world(tmp_path, request):
    worlds = []

    def make(**options):
        worlds.append(World(tmp_path / f"data{len(worlds)}", **{"is_alone": request.param, **options}))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def world(make_world):
    return make_world()
