from __future__ import annotations

import gc
import weakref

import pytest

from gateway.admin.rosters import keeper
from gateway.admin.rosters.keeper import Rosters
from gateway.admin.rosters.roster import Roster
from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio


class _Empty(Roster):
    def sources(self):
        return []

    def open(self, source):
        raise AssertionError(source)


class _Worn(_Empty):
    is_worn = True


async def test_a_list_is_kept_until_nobody_asks_for_it(monkeypatch):
    rosters = Rosters()
    first = rosters.get("queues", _Empty)
    assert rosters.get("queues", _Empty) is first
    rosters.tend()
    assert len(rosters) == 1
    monkeypatch.setattr(keeper, "IDLE_S", -1.0)
    rosters.tend()
    assert len(rosters) == 0
    worn = rosters.get("queues", _Worn)
    assert rosters.get("queues", _Empty) is not worn
    rosters.stop()
    assert len(rosters) == 0


async def test_of_very_many_lists_those_asked_for_last_are_kept(monkeypatch):
    monkeypatch.setattr(keeper, "KEPT_MAX", 3)
    rosters = Rosters()
    kept = [rosters.get(("connections", number), _Empty) for number in range(3)]
    assert rosters.get(("connections", 0), _Empty) is kept[0]
    rosters.get(("connections", 3), _Empty)
    assert len(rosters) == 3
    assert rosters.get(("connections", 0), _Empty) is kept[0]
    assert rosters.get(("connections", 1), _Empty) is not kept[1]


async def test_lists_are_forgotten_one_at_a_time(monkeypatch):
    rosters = Rosters()
    for name in ("queues", "connections"):
        rosters.get(name, _Empty)
    monkeypatch.setattr(keeper, "IDLE_S", -1.0)
    rosters.tend()
    assert len(rosters) == 1
    rosters.tend()
    assert len(rosters) == 0


async def test_a_list_that_is_forgotten_goes_without_the_collector(tmp_path, monkeypatch):
    paths = ["queues", "queues/%2F", "bindings", "channels", "consumers", "connections", "vhosts/%2F/connections"]
    paths += ["lmq/queues", "lmq/queues?door=mqtt", "lmq/sessions", "lmq/subscriptions"]
    made, held = {}, []
    keep = Rosters.get

    def get(rosters, name, make):
        held.append(rosters)
        found = keep(rosters, name, make)
        made[name] = weakref.ref(found)
        return found

    monkeypatch.setattr(Rosters, "get", get)
    async with managed_gateway(tmp_path) as (_, client):
        await client.put("/api/queues/%2F/jobs", json={"durable": True})
        gc.disable()
        try:
            for path in paths:
                assert (await client.get(f"/api/{path}")).status_code == 200
            assert len(made) == len(paths)
            monkeypatch.setattr(keeper, "IDLE_S", -1.0)
            for _ in made:
                held[0].tend()
            assert [name for name, found in made.items() if found() is not None] == []
        finally:
            gc.enable()
