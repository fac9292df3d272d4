"""The engines that tests of doors run on: one that answers at once, and one that does not."""

from __future__ import annotations

import os
from functools import partial
from types import SimpleNamespace

import pytest

from core.store.embedded import EmbeddedEngine
from core.store.message_store import MessageStore
from gateway.telemetry import manager
from tests.support.late_engine import make_late

MAKERS = {"embedded": EmbeddedEngine, "late": partial(make_late, away=0.5)}


def choose_engine(request):
    """Return what makes the engine that `request.param` names, for the test that asks.

    Half of what is read from the late one is not here yet. Tests that look at what comes in between are marked
    `at_once`; those that look at the order of queues, at counts or at the turns that reading takes, `here`. A mark says
    why.
    """
    at_once, here = (request.node.get_closest_marker(name) for name in ("at_once", "here"))
    reasons = [mark.kwargs["reason"] for mark in (at_once, here) if mark is not None]
    if request.param == "embedded" or not reasons:
        return MAKERS[request.param]
    if at_once:
        pytest.skip(reasons[0])
    return make_late


def stand_on(request, monkeypatch):
    """Have gateways that start in this process stand on the engine that `request.param` names.

    They do so on the late one in one build only: most of their time is waiting for sockets.
    """
    if request.param == "late" and os.environ.get("LMQ_COMPILE") == "none":
        pytest.skip("is run in the compiled build")
    make_engine = choose_engine(request)

    def open_engine(data_dir, settings, *, now_ms):
        store = MessageStore.open(data_dir, settings, now_ms=now_ms)
        return make_engine(store, is_sync=settings.flush.mode == "sync")

    monkeypatch.setattr(manager, "EmbeddedEngine", SimpleNamespace(open=open_engine))
