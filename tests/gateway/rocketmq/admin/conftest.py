from __future__ import annotations

import pytest

from tests.support.engines import with_open_queues


@pytest.fixture
def engine_maker(engine_maker):
    """Figures are told as far as they are known."""
    return with_open_queues(engine_maker)
