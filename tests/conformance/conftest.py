from __future__ import annotations

import pytest

from tests.support.engines import MAKERS, choose_engine


@pytest.fixture(params=MAKERS)
def engine_maker(request):
    """What makes the engine of the doors."""
    return choose_engine(request)
