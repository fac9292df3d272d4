"""The engines that tests of doors run on: one that answers at once, and one that does not."""

from __future__ import annotations

import os
from functools import partial

import pytest

from core.store.embedded import EmbeddedEngine
from gateway.telemetry.manager import Telemetry
from tests.support.build import IS_COMPILED
from tests.support.late_engine import make_late

MAKERS = {"embedded": EmbeddedEngine, "late": partial(make_late, away=0.5)}
ENGINE_OF_BUILD = "embedded" if IS_COMPILED else "late"


class Standing:
    """What the test under way stands on where it opens a door and says nothing of engines: `name` is one of MAKERS.

    Module-wide, since worlds and gateways are opened by helpers and fixtures that know no test.
    """

    def __init__(self):
        self.name = ENGINE_OF_BUILD
        self.item = None
        self.make_engine = None  # chosen by a fixture


STANDING = Standing()


def begin(item):
    """Let a test begin, before its fixtures are set up."""
    STANDING.item, STANDING.make_engine = item, None


def _reasons():
    """Return the reasons of the marks `at_once` and `here` of the test under way, None where it has no such mark."""
    marks = [STANDING.item.get_closest_marker(name) for name in ("at_once", "here")]
    return [None if mark is None else mark.kwargs["reason"] for mark in marks]


def choose_engine(request):
    """Return what makes the engine that `request.param` names, for the test that asks.

    Half of what is read from the late one is not here yet. Tests that look at what comes in between are marked
    `at_once`; those that look at the order of queues, at counts or at the turns that reading takes, `here`. A mark says
    why.
    """
    at_once, here = _reasons()
    if request.param == "late" and at_once:
        pytest.skip(at_once)
    return make_late if request.param == "late" and here else MAKERS[request.param]


def stand_on(request):
    """Have gateways that start in this process stand on the engine that `request.param` names.

    They do so on the late one in one build only: most of their time is waiting for sockets.
    """
    if request.param == "late" and os.environ.get("LMQ_COMPILE") == "none":
        pytest.skip("is run in the compiled build")
    STANDING.make_engine = choose_engine(request)


def find_maker(given=None):
    """Return what makes the engine of a world of doors: `given` if that is said, else what the test stands on.

    A test that gives the embedded engine by itself says by a mark why it does not run on the late one.
    """
    if STANDING.item is None:  # a program
        return given or EmbeddedEngine
    at_once, here = _reasons()
    if given is None:
        late = make_late if here else MAKERS["late"]
        return STANDING.make_engine or (EmbeddedEngine if at_once or STANDING.name == "embedded" else late)
    params = getattr(STANDING.item, "callspec", None)
    is_chosen = params is not None and any(value in ("embedded", EmbeddedEngine) for value in params.params.values())
    is_embedded = isinstance(given, type) and issubclass(given, EmbeddedEngine)
    assert at_once or is_chosen or not is_embedded, "a test on the embedded engine alone says why: at_once(reason=...)"
    return given


def open_engine(telemetry, data_dir, store, *, now_ms, open_embedded=Telemetry.open_engine):
    """Open the engine of a gateway in this process, in the place of `Telemetry.open_engine`."""
    engine = open_embedded(telemetry, data_dir, store, now_ms=now_ms)
    maker = find_maker()
    if maker is EmbeddedEngine:
        return engine
    assert type(engine) is EmbeddedEngine, "traces are made in the embedded engine: at_once(reason=...)"
    return maker(engine.store, is_sync=store.flush.mode == "sync")


def with_open_queues(make_engine):
    """Return what makes engines as `make_engine` does, on which all queues are open: also those that answer late."""

    def make(store, **options):
        engine = make_engine(store, **options)
        if hasattr(engine, "opens_late"):
            engine.opens_late = False
        return engine

    return make
