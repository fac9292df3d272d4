from __future__ import annotations

import logging
from functools import partial

import pytest

from core.store.embedded import EmbeddedEngine
from gateway.logs import CHATTY
from tests.support.late_engine import make_late

MAKERS = {"embedded": EmbeddedEngine, "late": partial(make_late, away=0.5)}


@pytest.fixture(params=MAKERS)
def engine_maker(request):
    """What makes the engine of a door's world: tests run on one that answers at once, and on one that does not.

    Half of what is read from the other is not here yet. Tests that look at what comes in between are marked `at_once`;
    those that look at the order of queues, at counts or at the turns that reading takes, `here`. A mark says why.
    """
    at_once, here = (request.node.get_closest_marker(name) for name in ("at_once", "here"))
    reasons = [mark.kwargs["reason"] for mark in (at_once, here) if mark is not None]
    if request.param == "embedded" or not reasons:
        return MAKERS[request.param]
    if at_once:
        pytest.skip(reasons[0])
    return make_late


@pytest.fixture
def kept_logs():
    """Put the log back as it was, for tests of what sets it up."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    levels = {logger: logger.level for logger in map(logging.getLogger, (None, *CHATTY))}
    yield
    root.handlers[:] = handlers
    for logger, level in levels.items():
        logger.setLevel(level)
