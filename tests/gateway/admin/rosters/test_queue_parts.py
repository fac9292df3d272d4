from __future__ import annotations

import asyncio
import random

import pytest

from core.lmq.called import LongNames
from core.lmq.queue_name import mqtt_queue_name
from gateway.admin.ours.light_queues import ends_of
from gateway.admin.rosters import chunks, queue_parts, roster
from gateway.admin.rosters.queue_columns import Flowing, Pacing, Standing
from gateway.admin.rosters.queue_parts import AmqpPart, told_name, told_names
from gateway.admin.rosters.sorting import BUCKET_COUNT
from gateway.amqp.inventory import count_messages
from gateway.amqp.queue_rows import QueueRows
from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish, subscribe

pytestmark = pytest.mark.asyncio
COLUMNS = {
    "length": Standing(lambda queues: [len(queue.name) for queue in queues]),
    "given": Flowing(lambda _, queue: queue.name.count("e")),
    "rate": Pacing(lambda queues, refs: [float(ref) for _, ref in zip(queues(), refs, strict=True)]),
}


async def _names(client, where, **asked):
    found = (await client.get(where, params={"page": 1, **asked})).json()
    assert found["filtered_count"] == len(found["items"])
    return [item["name"] for item in found["items"]]


async def test_queues_that_come_and_go_are_in_the_next_answer(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "b", "d")
        assert await _names(client, "/api/queues") == ["b", "d"]
        declare(gateway, "a", "c")
        assert await _names(client, "/api/queues", sort_reverse="true") == ["d", "c", "b", "a"]
        await client.delete("/api/queues/%2F/c")
        await client.delete("/api/queues/%2F/b")
        assert await _names(client, "/api/queues", sort="messages") == ["d", "a"]
        declare(gateway, "b")
        assert await _names(client, "/api/queues") == ["a", "b", "d"]
        assert await _names(client, "/api/queues", name="B") == ["b"]
        await client.put("/api/vhosts/other", json={})
        await client.put("/api/queues/other/c", json={})
        assert await _names(client, "/api/queues") == ["a", "b", "c", "d"]
        assert await _names(client, "/api/queues/other") == ["c"]
        await client.delete("/api/vhosts/other")
        assert await _names(client, "/api/queues") == ["a", "b", "d"]


def _told(part):
    """Returns what is told of all queues at once, by column, with what each says itself."""
    for _ in part.arrivals():
        pass
    vhost, broker = part._vhost, part._vhost.broker
    keys = {
        "messages": lambda queue: sum(count_messages(broker, vhost, queue)),
        "messages_ready": lambda queue: count_messages(broker, vhost, queue)[0],
        "messages_unacknowledged": lambda queue: count_messages(broker, vhost, queue)[1],
        "length": lambda queue: len(queue.name),
        "given": lambda queue: queue.name.count("e"),
        "next_offset": lambda queue: ends_of(broker, (vhost, queue))[1],
        "kept": lambda queue: ends_of(broker, (vhost, queue))[1] - ends_of(broker, (vhost, queue))[0],
        "vhost": lambda queue: vhost.name,
        "door": lambda queue: "amqp",
        "rate": lambda queue: float(broker.find_queue(queue.light_name)),
    }
    placed = [part.take(number) for number in range(part.size)]
    for column, key in keys.items():
        told = part.figures(column, 0, part.size)
        there = [number for number, one in enumerate(placed) if one]
        assert [told[number] for number in there] == [key(placed[number][1]) for number in there]
        scattered = part.scattered(column, there[::-1])
        assert scattered is None or list(scattered) == [told[number] for number in reversed(there)]
    assert part.figures("policy", 0, part.size) is None
    return {one[1].name: part.figures("messages", number, number + 1)[0] for number, one in enumerate(placed) if one}


async def test_what_queues_have_is_told_at_once_as_each_says_it(tmp_path, monkeypatch):
    async with managed_gateway(tmp_path) as (gateway, client):
        vhost = gateway.doors["amqp"].vhost
        for name in ("a", "bb", "c"):
            await client.put(f"/api/queues/%2F/{name}", json={"arguments": {"x-max-priority": 2}})
        declare(gateway, "d", "ee")
        await publish(client, "amq.default", "ee", "x")
        part = AmqpPart(vhost, COLUMNS.get)
        assert _told(part) == {"a": 0, "bb": 0, "c": 0, "d": 0, "ee": 1}
        for key, count in (("a", 3), ("d", 2)):
            for _ in range(count):
                await publish(client, "amq.default", key, "x", {"priority": 1} if key == "a" else {})
        assert _told(part) == {"a": 3, "bb": 0, "c": 0, "d": 2, "ee": 1}
        await client.delete("/api/queues/%2F/a/contents")
        await client.delete("/api/queues/%2F/d/contents")
        assert _told(part) == {"a": 0, "bb": 0, "c": 0, "d": 0, "ee": 1}
        await client.delete("/api/queues/%2F/bb")
        declare(gateway, "bb", "f\ng")
        await publish(client, "amq.default", "d", "x")
        await publish(client, "amq.default", "bb", "x")
        assert _told(part) == {"a": 0, "c": 0, "d": 1, "ee": 1, "bb": 1, "f\ng": 0}
        assert part.names(0, part.size).split("\n") == ["a", "bb", "c", "d", "ee", "bb", "f g"]


async def test_messages_are_counted_after_a_start_without_opening_queues_in_which_nothing_was_taken(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for name in ("a", "b", "c"):
            await client.put(f"/api/queues/%2F/{name}", json={"durable": True})
        for name in ("a", "a", "c"):
            await publish(client, "amq.default", name, "x", {"delivery_mode": 2})
        await client.delete("/api/queues/%2F/c/contents")
        await publish(client, "amq.default", "c", "y", {"delivery_mode": 2})
    async with managed_gateway(tmp_path) as (gateway, client):
        vhost = gateway.doors["amqp"].vhost
        part = AmqpPart(vhost, COLUMNS.get)
        for _ in part.arrivals():
            pass
        untouched = [queue.name for queue in vhost if not vhost.pops.knows(queue.light_name)]
        assert list(part.figures("messages_ready", 0, 2)) == [2, 0]
        assert [name for name in untouched if vhost.find(name).is_open] == []
        for queue in vhost:
            vhost.open(queue)
        async with asyncio.timeout(20):
            while not all(queue.is_open for queue in vhost):
                await asyncio.sleep(0)
        assert [count_messages(vhost.broker, vhost, queue)[0] for queue in vhost] == [2, 0, 1]
        assert _told(part) == {"a": 2, "b": 0, "c": 1}


async def test_light_queues_that_come_later_are_in_the_next_answer(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "m")
        assert await _names(client, "/api/lmq/queues") == ["m"]
        async with subscribe(gateway, "device", "plant/+/temp"):
            assert await _names(client, "/api/lmq/queues") == ["m", "plant/+/temp"]
            assert await _names(client, "/api/lmq/queues", sort="readers", sort_reverse="true") == ["plant/+/temp", "m"]
            assert await _names(client, "/api/lmq/queues", door="mqtt") == ["plant/+/temp"]
        view = client._transport.app.state.view
        view.rocketmq.topics.open_for_send(b"ORDERS", b"TBW102", 1)
        assert await _names(client, "/api/lmq/queues", door="rocketmq") == []
        view.broker.intern_queue(b"ORDERS/0")
        assert await _names(client, "/api/lmq/queues", door="rocketmq") == ["ORDERS/0"]
        view.rocketmq.topics.delete(b"ORDERS")
        assert await _names(client, "/api/lmq/queues", door="rocketmq") == []


async def test_light_queues_are_called_as_clients_call_them():
    names = LongNames()
    assert told_name(b"%LMQ%mqtt%plant%1%temp", names) == "plant/1/temp"
    assert told_name(b"%LMQ%mqtt%plant%|p%|h", names) == "plant/+/#"
    assert told_name(b"%LMQ%mqtt%|z" + b"0" * 40, names) == "(a filter with a long name, 00000000)"
    names.note(b"%LMQ%mqtt%|z" + b"0" * 40, b"mqtt", b"", b"long/#")
    assert told_name(b"%LMQ%mqtt%|z" + b"0" * 40, names) == "long/#"
    assert told_name(b"ORDERS/3", names) == "ORDERS/3"


async def test_filters_are_called_the_same_many_at_once():
    filters = [b"plant/1/temp", b"plant/+/#", b"a", b"", b"x-y_z/%LMQ", "ü|p/|h".encode(), b"a b\nc", b"long/" * 60]
    keys = [mqtt_queue_name(one) for one in filters]
    for some in (keys, keys[:3], keys[:1], []):
        lines = b"".join([b"\n" + key.removeprefix(queue_parts.MQTT_PREFIX) for key in some])
        assert told_names(lines, LongNames()) == "\n".join(
            [told_name(key, LongNames()).replace("\n", " ") for key in some]
        )


async def test_filters_between_queues_of_other_doors_are_each_in_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr(queue_parts, "LOOKS_A_STEP", 4)
    monkeypatch.setattr(queue_parts.FiltersPart, "names_at_once", 4)
    async with managed_gateway(tmp_path) as (gateway, client):
        filters = [f"f/{number:02}" for number in range(30)]
        for number, one in enumerate(filters):
            gateway.broker.intern_queue(mqtt_queue_name(one.encode()))
            if number in {3, 17}:
                gateway.broker.intern_queue(b"ORDERS/%d" % number)
            if number == 9:
                declare(gateway, *"abcdefghijk")
        assert await _names(client, "/api/lmq/queues", door="mqtt") == filters
        assert sorted(await _names(client, "/api/lmq/queues")) == sorted([*"abcdefghijk", *filters])


@pytest.mark.parametrize("column", ["readers", "rate_in", "door", "vhost", "messages_ready"])
async def test_first_pages_by_what_is_told_of_many_at_once_are_those_of_a_sort(tmp_path, monkeypatch, column):
    draw = random.Random(4)
    async with managed_gateway(tmp_path) as (gateway, client):
        names = [f"f/{number:02}" for number in range(60)]
        for number, name in enumerate(names):
            gateway.broker.intern_queue(mqtt_queue_name(name.encode()))
            if number in {20, 41}:
                gateway.broker.intern_queue(b"ORDERS/%d" % number)
        view = client._transport.app.state.view
        await view.activity.look()
        async with subscribe(gateway, "device", *(read := draw.sample(names, 14))):
            for name in read[:9]:
                await publish(client, "amq.topic", name.replace("/", "."), "x")
            await view.activity.look()
            asked = {"door": "mqtt", "sort": column}
            for reverse in (False, True):
                told = (await client.get("/api/lmq/queues", params={**asked, "sort_reverse": reverse})).json()
                view.rosters.stop()
                with monkeypatch.context() as patch:
                    patch.setattr(roster, "LONG", 20)
                    patch.setattr(chunks, "FIGURES_A_STEP", 8)
                    page = {"page": 1, "page_size": 30, "sort_reverse": reverse}
                    found = (await client.get("/api/lmq/queues", params={**asked, **page})).json()
                view.rosters.stop()
                assert [item["name"] for item in found["items"]] == [item["name"] for item in told[:30]]


@pytest.mark.parametrize("column", ["kept", "next_offset"])
async def test_first_pages_by_offsets_ask_few_queues_and_are_those_of_a_sort(tmp_path, monkeypatch, column):
    monkeypatch.setattr(roster, "LONG", 20)
    monkeypatch.setattr(chunks, "FIGURES_A_STEP", 8)
    draw = random.Random(9)
    async with managed_gateway(tmp_path) as (gateway, client):
        names = [f"f/{number:02}" for number in range(100)]
        for number, name in enumerate(names):
            gateway.broker.intern_queue(mqtt_queue_name(name.encode()))
            if number in {40, 41, 77}:
                gateway.broker.intern_queue(b"ORDERS/%d" % number)
        depths = dict.fromkeys(names, 0) | {name: draw.randrange(1, 4) for name in draw.sample(names, 12)}
        async with subscribe(gateway, "device", *(name for name in names if depths[name])):
            for name in names:
                for _ in range(depths[name]):
                    await publish(client, "amq.topic", name.replace("/", "."), "x")
        for reverse in (False, True):
            asked = {"door": "mqtt", "page": 1, "page_size": 30, "sort": column, "sort_reverse": reverse}
            found = (await client.get("/api/lmq/queues", params=asked)).json()
            wanted = sorted(names, key=lambda name: (depths[name], name), reverse=reverse)[:30]
            assert [item["name"] for item in found["items"]] == wanted
            client._transport.app.state.view.rosters.stop()


@pytest.mark.parametrize("arguments", [{"x-max-priority": 4}, {}])
@pytest.mark.parametrize("column", ["messages", "messages_ready"])
async def test_first_pages_of_amqp_queues_by_messages_are_those_of_a_sort(tmp_path, monkeypatch, column, arguments):
    draw = random.Random(5)
    async with managed_gateway(tmp_path) as (gateway, client):
        names = [f"q{number:02}" for number in range(60)]
        for name in names[:-2]:
            declare(gateway, name)
        for name in names[-2:]:
            assert (await client.put(f"/api/queues/%2F/{name}", json={"arguments": arguments})).is_success
        depths = dict.fromkeys(names, 0) | {name: draw.randrange(1, 4) for name in [*draw.sample(names, 9), names[-1]]}
        view = client._transport.app.state.view
        for is_more in (False, True):  # what had no light queue has one then
            for name in names:
                for _ in range(depths[name]):
                    await publish(client, "amq.default", name, "x")
            for reverse in (False, True):
                with monkeypatch.context() as patch:
                    patch.setattr(roster, "LONG", 20)
                    patch.setattr(chunks, "FIGURES_A_STEP", 8)
                    asked = {"page": 1, "page_size": 20, "sort": column, "sort_reverse": reverse}
                    found = (await client.get("/api/queues", params=asked)).json()
                wanted = sorted(names, key=lambda name: (depths[name], name), reverse=reverse)[:20]
                assert [item["name"] for item in found["items"]] == wanted
                assert {item["messages"] for item in found["items"]} == {
                    depths[name] * (2 if is_more else 1) for name in wanted
                }
                for one in view.rosters._kept.values():
                    one.stop()
                    one._orders.clear()


@pytest.mark.parametrize(
    ("where", "column"),
    [
        ("/api/queues", "next_offset"),
        ("/api/queues", "readers"),
        ("/api/queues", "kept"),
        ("/api/lmq/queues", "consumers"),
        ("/api/lmq/queues", "messages"),
        ("/api/lmq/queues", "messages_unacknowledged"),
    ],
)
async def test_lists_are_sorted_by_columns_that_only_another_list_is_told_of_at_once(tmp_path, where, column):
    async with managed_gateway(tmp_path) as (gateway, client):
        names = [f"q{number:04}" for number in range(2 * BUCKET_COUNT)]
        declare(gateway, *names)
        asked = {"page": 1, "page_size": 10, "sort": column}
        for page in (1, 2):
            found = await client.get(where, params={**asked, "page": page})
            assert [item["name"] for item in found.json()["items"]] == names[10 * page - 10 : 10 * page]


async def test_a_page_by_name_needs_the_numbers_of_no_light_queues(tmp_path, monkeypatch):
    async with managed_gateway(tmp_path) as (gateway, client):
        names = [f"q{number:02}" for number in range(40)]
        declare(gateway, *names)
        asked, find = [], QueueRows._find
        monkeypatch.setattr(QueueRows, "_find", lambda rows, *span: asked.append(span) or find(rows, *span))
        found = (await client.get("/api/queues", params={"page": 1, "page_size": 3})).json()
        assert [item["name"] for item in found["items"]] == names[:3]
        assert asked == []
        by_depth = {"page": 1, "page_size": 3, "sort": "messages"}
        assert (await client.get("/api/queues", params=by_depth)).status_code == 200
        assert asked


async def test_deleted_queues_are_told_and_numbers_given_anew_make_another_list(tmp_path, monkeypatch):
    async with managed_gateway(tmp_path) as (gateway, client):
        names = [f"q{number:02}" for number in range(12)]
        declare(gateway, *names)
        vhost, view = gateway.doors["amqp"].vhost, client._transport.app.state.view
        part = AmqpPart(vhost, COLUMNS.get)
        assert part.alive() == 0
        for _ in part.arrivals():
            pass
        await client.delete("/api/queues/%2F/q03")
        assert (list(part.gone), part.alive(), part.there(2, 5)) == ([3], 11, b"\1\0\1")
        assert await _names(client, "/api/queues") == [name for name in names if name != "q03"]
        kept = view.rosters._kept[("amqp", None)]
        monkeypatch.setattr(QueueRows, "is_worn", True)
        gateway.doors["amqp"].vhosts.drop_expired(0)
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            while not part.is_left:
                await asyncio.sleep(0)
        monkeypatch.undo()
        await client.delete("/api/queues/%2F/q05")
        assert part.alive() == 10  # counted anew: nobody tells it of deleted ones any more
        assert await _names(client, "/api/queues") == [name for name in names if name not in {"q03", "q05"}]
        assert view.rosters._kept[("amqp", None)] is not kept
