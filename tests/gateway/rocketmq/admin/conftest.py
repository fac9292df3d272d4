from __future__ import annotations

import pytest


@pytest.fixture
def engine_maker(engine_maker):
    """Make engines as elsewhere, on which all queues are open.

    Figures are told as far as they are known, and the queues of half messages are the gateway's own.
    """

    def make(store, **options):
        engine = engine_maker(store, **options)
        if hasattr(engine, "opens_late"):
            engine.opens_late = False
        return engine

    return make
