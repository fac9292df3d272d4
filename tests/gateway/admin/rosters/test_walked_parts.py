from __future__ import annotations

import aiormq
import pytest

from gateway.admin.rosters.walked_parts import OrderedPart, WalkedPart
from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import subscribe, until_amqp_is_left

pytestmark = pytest.mark.asyncio


def _look(part):
    for _ in part.arrivals():
        pass
    return [part.take(number) for number in range(part.size)]


def _look_only(part):
    return [part.take(number) for number in range(part.size)]


async def test_what_comes_and_goes_in_no_order_keeps_its_number_and_what_is_gone_is_let_go():
    there = {"a", "b"}
    part = WalkedPart(lambda: sorted(there), lambda one: f"name of {one}", lambda one: one.upper())
    assert _look(part) == ["A", "B"]
    there.remove("a")
    there.add("c")
    assert (_look(part), part.alive()) == ([None, "B", "C"], 2)
    there.add("a")
    assert _look(part) == [None, "B", "C", "A"]
    assert [part.name(number) for number in (0, 2)] == ["name of a", "name of c"]


async def test_a_walk_that_ends_early_takes_nothing_away_and_looks_in_vain_are_passed_over():
    there = [None, *map(str, range(200))]
    part = WalkedPart(lambda: iter(there), lambda one: one, lambda one: one)
    assert [one for one in _look(part) if one is not None] == there[1:]
    there[1:150] = []
    next(part.arrivals())  # the one that asked went away
    assert part.alive() == 200
    assert [one for one in _look(part) if one is not None] == there[1:]
    assert (part.alive(), part.size) == (51, 200)


async def test_some_figures_of_what_is_in_no_order_are_told_at_once():
    there = {"a": 1, "b": 2}
    told = {"size": lambda some: [there.get(one, 0) for one in some], "age": lambda _some: None}
    part = WalkedPart(lambda: sorted(there), str, str, figures=told)
    assert _look(part) == ["a", "b"]
    assert part.figures("size", 0, 2) == [1, 2]
    del there["a"]
    assert _look(part) == [None, "b"]
    assert (part.figures("size", 0, 2), part.figures("age", 0, 2), part.figures("other", 0, 2)) == ([0, 2], None, None)


async def test_some_figures_of_what_is_in_order_are_told_at_once():
    there = {"a": 1, "b": 2}
    told = {"size": lambda some: [there.get(one, 0) for one in some]}
    part = OrderedPart(lambda: reversed(there), lambda: len(there), there.__contains__, str, str, told)
    assert _look(part) == ["a", "b"]
    del there["a"]
    assert (part.figures("size", 0, 2), part.figures("other", 0, 2)) == ([0, 2], None)


async def test_there_is_no_walk_while_nothing_came_or_went():
    there, changes, walks = ["a", *map(str, range(200))], [1], []

    def walk():
        walks.append(1)
        return iter(list(there))

    part = WalkedPart(walk, lambda one: one, lambda one: one, lambda: tuple(changes))
    next(part.arrivals())  # the one that asked went away: nothing is known yet
    assert _look(part) == there
    assert _look(part) == there
    assert len(walks) == 2
    there[0] = "b"
    changes[0] = 2
    assert _look(part) == [None, *there[1:], "b"]
    walk_on = part.arrivals()
    changes[0] = 3
    next(walk_on)
    there.append("c")
    changes[0] = 4  # while that walk is under way, which does not meet the last one
    assert [0 for _ in walk_on]
    assert "c" not in _look_only(part)
    assert _look(part)[-1] == "c"


async def test_channels_consumers_and_subscriptions_of_now_are_in_each_answer(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        host, port = gateway.listening["amqp"]
        connection = await aiormq.connect(f"amqp://guest:guest@{host}:{port}/")
        assert await _pages(client, "/api/channels", "number") == []
        first, second = await connection.channel(), await connection.channel()
        await first.basic_consume("q", lambda _: None, consumer_tag="a")
        await second.basic_consume("q", lambda _: None, consumer_tag="b")
        asked = {"sort": "number", "sort_reverse": "true", "columns": "number,consumer_count"}
        assert await _pages(client, "/api/channels", "number", **asked) == [2, 1]
        assert await _pages(client, "/api/consumers", "consumer_tag") == ["a", "b"]
        assert await _pages(client, "/api/consumers/%2F", "consumer_tag", name="B") == ["b"]
        await second.basic_cancel("b")
        await first.close()
        assert await _pages(client, "/api/consumers", "consumer_tag") == []
        assert await _pages(client, "/api/channels", "consumer_count") == [0]
        await connection.close()
        await until_amqp_is_left(gateway)
        assert await _pages(client, "/api/channels", "number") == []
        async with subscribe(gateway, "b", "t/b", "t/a", "$share/g/t"):
            asked = {"sort": "client"}
            assert await _pages(client, "/api/lmq/subscriptions", "filter") == ["$share/g/t", "t/a", "t/b"]
        async with subscribe(gateway, "a", "t/b"):
            assert await _pages(client, "/api/lmq/subscriptions", "client", name="t/b", **asked) == ["a", "b"]
        await client.delete("/api/lmq/sessions/b")
        assert await _pages(client, "/api/lmq/subscriptions", "client") == ["a"]
    async with managed_gateway(tmp_path) as (_, client):
        assert await _pages(client, "/api/lmq/subscriptions", "client") == ["a"]


async def test_of_what_is_kept_in_order_only_what_came_since_is_looked_at():
    there = {"a": 1, "b": 2, "c": 3}
    looked = []

    def newest_first():
        for one in reversed(there):
            looked.append(one)
            yield one

    part = OrderedPart(newest_first, lambda: len(there), lambda one: one in there, str, str.upper)
    assert _look(part) == ["A", "B", "C"]
    del there["c"]
    there["d"] = 4
    looked.clear()
    assert (_look(part), looked) == (["A", "B", None, "D"], ["d", "b"])
    assert (part.alive(), part.name(3)) == (3, "d")


async def _pages(client, where, column, **asked):
    found = (await client.get(where, params={"page": 1, **asked})).json()
    assert (found["filtered_count"], found["total_count"] >= len(found["items"])) == (len(found["items"]), True)
    return [item[column] for item in found["items"]]


async def test_sessions_connections_and_bindings_of_now_are_in_each_answer(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        assert await _pages(client, "/api/lmq/sessions", "client") == []
        async with subscribe(gateway, "b", "t"):
            assert await _pages(client, "/api/connections", "protocol") == ["MQTT"]
        assert await _pages(client, "/api/connections", "protocol") == []
        async with subscribe(gateway, "a", "t", "u"):
            assert await _pages(client, "/api/lmq/sessions", "client") == ["a", "b"]
            asked = {"sort": "subscriptions", "sort_reverse": "true", "columns": "client,connected"}
            assert await _pages(client, "/api/lmq/sessions", "connected", **asked) == [True, False]
        await client.delete("/api/lmq/sessions/a")
        assert await _pages(client, "/api/lmq/sessions", "client", name="A") == []
        declare(gateway, "q")
        assert await _pages(client, "/api/bindings", "source") == [""]
        for _ in range(2):
            await client.post("/api/bindings/%2F/e/amq.fanout/q/q", json={"routing_key": "k"})
            assert await _pages(client, "/api/bindings/%2F", "source") == ["", "amq.fanout"]
            assert await _pages(client, "/api/bindings", "destination", name="fan") == ["q"]
            await client.delete("/api/bindings/%2F/e/amq.fanout/q/q/k")
            assert await _pages(client, "/api/bindings", "source") == [""]
        await client.delete("/api/queues/%2F/q")
        assert await _pages(client, "/api/bindings", "source") == []
