from __future__ import annotations

import pytest

from tests.support.mqtt_door import World


@pytest.fixture
def make_world(tmp_path, engine_maker):
    worlds = []

    def make(**options):
        options.setdefault("make_engine", engine_maker)
        worlds.append(World(tmp_path / f"data{len(worlds)}", **options))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def world(make_world):
    return make_world()
