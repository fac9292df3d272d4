from __future__ import annotations

import logging

import pytest

from gateway.logs import CHATTY
from tests.support.engines import MAKERS, choose_engine, stand_on


@pytest.fixture(params=MAKERS)
def engine_maker(request):
    """What makes the engine of a door's world."""
    return choose_engine(request)


@pytest.fixture(params=MAKERS)
def engine(request):
    """Have gateways of this process stand on the embedded engine, and on one that answers late."""
    stand_on(request)


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
