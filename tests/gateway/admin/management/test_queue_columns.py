from __future__ import annotations

import random

import pytest

from gateway.admin import activity
from gateway.admin.management import queues
from gateway.admin.management.listing import dig, rank
from gateway.admin.rosters import chunks, roster
from tests.support.admin import managed_gateway
from tests.support.admin_clients import publish

pytestmark = [pytest.mark.asyncio, pytest.mark.here(reason="a list tells of the messages that are here")]
COUNT = 25
UNSORTED = {"name", "vhost", "node", "state", "messages_ram", "exclusive_consumer_tag", "single_active_consumer_tag"}


def _paths(item, outer=""):
    for name, value in item.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{outer}{name}.")
        else:
            yield outer + name


async def _prepare(client, monkeypatch):
    """Makes queues that differ in all that is told of them."""
    now = [1_000.0]
    monkeypatch.setattr(activity, "monotonic", lambda: now[0])
    draw = random.Random(7)
    kinds = [{}, {"x-max-length": 9}, {"x-queue-type": "quorum"}, {"x-max-priority": 2}, {"x-overflow": "drop-head"}]
    for number in range(COUNT):
        is_quorum = number % 5 == 2
        made = {"durable": is_quorum or number % 2 == 0, "auto_delete": not is_quorum and number % 7 == 0}
        made["arguments"] = kinds[number % 5]
        assert (await client.put(f"/api/queues/%2F/q{number:02}", json=made)).is_success
    for name, pattern in (("short", "^q1"), ("brief", "^q2")):
        rule = {"pattern": pattern, "definition": {"max-length": len(name) * 20}, "apply-to": "queues"}
        assert (await client.put(f"/api/policies/%2F/{name}", json=rule)).is_success
    view = client._transport.app.state.view
    await view.activity.look()
    names = [f"q{number:02}" for number in draw.sample(range(COUNT), 12)]
    for turn in range(3):
        for name in names:
            for _ in range(draw.randrange(1, 4)):
                await publish(client, "amq.default", name, "x" * draw.randrange(1, 50))
        for name in names[turn::4]:
            mode = ("ack_requeue_true", "ack_requeue_false")[1 - turn % 2]
            got = {"count": 2, "ackmode": mode, "encoding": "auto"}
            assert (await client.post(f"/api/queues/%2F/{name}/get", json=got)).is_success
        for name in names[::2]:  # it is watched from now on
            await client.get(f"/api/queues/%2F/{name}")
        now[0] += 5
        await view.activity.look()
    return view


async def _ask(client, view, where, column, **asked):
    view.rosters.stop()
    return (await client.get(where, params={"sort": column, **asked})).json()


@pytest.mark.slow
async def test_queues_are_sorted_by_whatever_is_told_of_them(tmp_path, monkeypatch):
    async with managed_gateway(tmp_path) as (_, client):
        view = await _prepare(client, monkeypatch)
        told = (await client.get("/api/queues")).json()
        columns = {path for item in told for path in _paths(item)} - UNSORTED
        differ = {path for path in columns if len({str(dig(item, path.split("."))) for item in told}) > 1}
        assert {
            "message_bytes",
            "lmq.oldest_at_ms",
            "arguments.x-max-length",
            "message_stats.ack_details.rate",
        } < differ
        for column in sorted(columns):
            whole = await _ask(client, view, "/api/queues", column)
            had = [rank(dig(item, column.split("."))) for item in whole]
            if column.endswith("_details.rate"):  # one that is not known stands as if nothing had left the queue
                had = [one for one in had if one != (0, 0)]
            had = [(1, 0) if one == (0, 0) and (1, 0) not in had else one for one in had]
            assert had == sorted(had), column
            with monkeypatch.context() as patch:
                patch.setattr(roster, "LONG", 20)
                patch.setattr(chunks, "FIGURES_A_STEP", 8)
                for some, reverse in ((whole, False), (whole[::-1], True)):
                    asked = {"page": 1, "page_size": 15, "sort_reverse": reverse}
                    page = await _ask(client, view, "/api/queues", column, **asked)
                    assert [item["name"] for item in page["items"]] == [item["name"] for item in some[:15]], column


async def test_a_column_that_no_queue_has_leaves_them_sorted_by_name_and_costs_no_more(tmp_path, monkeypatch):
    described = []
    find = queues.find_figures
    monkeypatch.setattr(queues, "find_figures", lambda *told: described.append(told) or find(*told))
    async with managed_gateway(tmp_path) as (_, client):
        for name in ("b", "c", "a"):
            await client.put(f"/api/queues/%2F/{name}", json={})
        for column in ("nonsense", "arguments", "message_stats", "name.first", "", "node"):
            for reverse, wanted in ((False, ["a", "b"]), (True, ["c", "b"])):
                asked = {"page": 1, "page_size": 2, "sort": column, "sort_reverse": reverse}
                found = (await client.get("/api/queues", params=asked)).json()
                assert [item["name"] for item in found["items"]] == wanted
                assert len(described) == 2  # those that are shown
                described.clear()


async def test_a_sort_by_rates_watches_no_queue(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for name in ("a", "b", "c"):
            await client.put(f"/api/queues/%2F/{name}", json={})
        asked = {"columns": "name", "sort": "message_stats.ack_details.rate"}
        assert len((await client.get("/api/queues", params=asked)).json()) == 3
        assert client._transport.app.state.view.activity._told == {}
