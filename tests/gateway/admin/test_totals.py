from __future__ import annotations

import asyncio

import pytest

from gateway.admin import pace, totals
from gateway.admin.totals import TotalsKeeper
from gateway.inventory import GroupEntry, QueueEntry

pytestmark = pytest.mark.asyncio
A = QueueEntry("a", "%LMQ%a", 0, 5, 2, ready=3, unacked=1)


async def test_those_that_ask_together_wait_for_one_walk(monkeypatch):
    walks = []

    def queues():
        walks.append(1)
        yield A
        yield None
        yield QueueEntry("b", "%LMQ%b", 0, 5, 1)

    keeper = TotalsKeeper(queues, lambda: iter([2, 3]), lambda: iter([(5, 1), (2, 3)]))
    assert set(await asyncio.gather(keeper.find(), keeper.find())) == {
        (2, 3, 1, 3, 5, 7, (A,), (), 4, (("", (3, 1, 3)),), (), (), (), ())
    }
    assert len(walks) == 1
    monkeypatch.setattr(pace, "FRESH_S", 0.0)
    monkeypatch.setattr(pace, "SHARE", 0)
    await keeper.find()
    assert len(walks) == 2


async def test_the_deepest_queues_are_known_by_name(monkeypatch):
    monkeypatch.setattr(totals, "DEEPEST_COUNT", 3)
    depths = [0, 5, 1, 9, 5, 2, 7]

    def queues():
        for number, depth in enumerate(depths):
            yield QueueEntry(f"q{number}", "", 0, 0, 0, ready=depth, unacked=0)

    found = await TotalsKeeper(queues, lambda: iter(()), lambda: iter(())).find()
    assert [(entry.name, entry.ready) for entry in found.deepest] == [("q3", 9), ("q6", 7), ("q1", 5)]


async def test_queues_that_give_most_once_more_now_are_known_by_name(monkeypatch):
    monkeypatch.setattr(totals, "REPEATING_COUNT", 2)
    monkeypatch.setattr(pace, "FRESH_S", 0.0)
    monkeypatch.setattr(pace, "SHARE", 0)
    again = {"long ago": 9_000, "still": 40, "rarely": 1, "never": 0}

    def queues():
        for name, count in again.items():
            yield QueueEntry(name, f"%LMQ%{name}", 0, 0, 0, again=count)

    keeper = TotalsKeeper(queues, lambda: iter(()), lambda: iter(()))
    assert [entry.name for entry in (await keeper.find()).repeating] == ["long ago", "still"]
    again.update({"still": 90, "rarely": 2})
    assert [(entry.name, entry.again) for entry in (await keeper.find()).repeating] == [("still", 90), ("rarely", 2)]
    again["still"] = 3  # its count began anew
    assert (await keeper.find()).repeating == ()


async def test_each_virtual_host_has_its_own_figures():
    queues = [
        QueueEntry(name, "", 0, 0, 1, ready=ready, unacked=1, vhost=name[0])
        for name, ready in (("v1", 3), ("v2", 4), ("w", 5))
    ]
    found = await TotalsKeeper(lambda: iter(queues), lambda: iter(()), lambda: iter(())).find()
    assert found.within({"v"}) == (7, 2, 2)
    assert found.within({"v", "w", "x"}) == (found.ready, found.unacked, found.readers) == (12, 3, 3)
    assert found.within(()) == (0, 0, 0)


@pytest.mark.asyncio
async def test_a_walk_that_costs_much_is_made_less_often(monkeypatch):
    monkeypatch.setattr(pace, "FRESH_S", 0.0)
    walks = []

    def begin():
        walks.append(1)
        return iter(())

    keeper = TotalsKeeper(begin, lambda: iter(()), lambda: iter(()))
    for share, expected in ((0, 1), (0, 2), (10**9, 2)):
        monkeypatch.setattr(pace, "SHARE", share)
        await keeper.find()
        assert len(walks) == expected


async def test_queues_that_a_walk_leaves_out_count_as_queues():
    found = await TotalsKeeper(lambda: iter([A]), lambda: iter(()), lambda: iter(()), queue_count=lambda: 7).find()
    assert (found.queues, found.ready, found.deepest) == (7, 3, (A,))


async def test_the_groups_that_were_given_most_once_more_since_the_look_before_are_known(monkeypatch):
    monkeypatch.setattr(totals, "REPEATING_COUNT", 2)
    monkeypatch.setattr(pace, "FRESH_S", 0.0)
    monkeypatch.setattr(pace, "SHARE", 0)
    counts = {"a": 9, "b": 1, "c": 5}

    def groups():
        for name, count in counts.items():
            yield GroupEntry("mqtt", name, "q", "%LMQ%q", 0, 0, 1, count)
            yield None

    keeper = TotalsKeeper(lambda: iter(()), lambda: iter(()), lambda: iter(()), groups=groups)
    assert [one.group for one in (await keeper.find()).repeating_groups] == ["a", "c"]
    counts |= {"b": 4, "c": 6}
    assert [one.group for one in (await keeper.find()).repeating_groups] == ["b", "c"]
    assert (await keeper.find()).repeating_groups == ()


async def test_the_sessions_and_groups_that_are_furthest_behind_are_known(monkeypatch):
    monkeypatch.setattr(totals, "BEHIND_COUNT", 2)
    backlogs = [("a", 5), None, ("b", 9), ("c", 7), ("d", 1)]
    lags = {("g", "t/0"): 4, ("g", "t/1"): 5, ("h", "t/0"): 8, ("done", "t/0"): 0, ("little", "t/0"): 1}

    def groups():
        for (name, queue), lag in lags.items():
            yield GroupEntry("rocketmq", name, queue, queue, 0, lag, 1)
            yield None

    def nothing():
        return iter(())

    keeper = TotalsKeeper(nothing, nothing, nothing, backlogs=lambda: iter(backlogs), lags=groups)
    found = await keeper.find()
    assert found.sessions_behind == (("b", 9), ("c", 7))
    assert found.groups_behind == ((("rocketmq", "g"), 9), (("rocketmq", "h"), 8))
