from __future__ import annotations

import pytest

from tests.support.amqp_door import AmqpWorld


@pytest.fixture
def world(tmp_path, engine_maker):
    """An AMQP door over a real store."""
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    yield world
    world.close()
