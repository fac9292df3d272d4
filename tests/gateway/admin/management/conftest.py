from __future__ import annotations

import pytest

from tests.support.amqp_door import AmqpWorld


@pytest.fixture
def world(tmp_path):
    """An AMQP door over a real store."""
    world = AmqpWorld(tmp_path)
    yield world
    world.close()
