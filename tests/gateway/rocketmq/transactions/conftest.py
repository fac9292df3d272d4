from __future__ import annotations

import pytest

from tests.support.engines import with_open_queues


@pytest.fixture
def engine_maker(engine_maker):
    """The queues of half messages are the gateway's own, which it opens."""
    return with_open_queues(engine_maker)
