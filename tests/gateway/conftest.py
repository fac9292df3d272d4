from __future__ import annotations

import pytest

from core.store.embedded import EmbeddedEngine
from tests.support.late_engine import make_late

MAKERS = {"embedded": EmbeddedEngine, "late": make_late}


@pytest.fixture(params=MAKERS)
def engine_maker(request):
    """What makes the engine of a door's world: tests run on one that answers at once, and on one that does not.

    Those that look at what comes in between are marked `at_once`.
    """
    if request.param != "embedded" and request.node.get_closest_marker("at_once"):
        pytest.skip("looks at what an engine that answers at once does in between")
    return MAKERS[request.param]
