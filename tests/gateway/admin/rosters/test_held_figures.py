"""What lies in queues is told of many at once, as each says it itself, and only those are asked that changed."""

from __future__ import annotations

import random
from array import array

import pytest

from gateway.admin.rosters import held_figures
from gateway.admin.rosters.held_figures import HeldFigures
from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish

pytestmark = [pytest.mark.asyncio, pytest.mark.at_once(reason="a queue has no messages before it is opened")]
LEVELS = {"x-max-priority": 2}


@pytest.fixture
def asked(monkeypatch):
    """The names of the queues that were asked, in order."""
    names = []
    see = HeldFigures._see

    def note(held, block, number, offset, first):
        names.append(held._rows.queues[number].name)
        return see(held, block, number, offset, first)

    monkeypatch.setattr(HeldFigures, "_see", note)
    return names


def _number(vhost):
    for _ in vhost.rows.take_in():
        pass
    return HeldFigures(vhost)


async def _get(client, name, mode, count=1):
    asked = {"count": count, "ackmode": mode, "encoding": "auto"}
    return (await client.post(f"/api/queues/%2F/{name}/get", json=asked)).json()


async def test_a_queue_is_asked_once_until_something_comes_or_it_is_opened(tmp_path, asked):
    async with managed_gateway(tmp_path) as (gateway, client):
        vhost = gateway.doors["amqp"].vhost
        declare(gateway, "a", "b", "c")
        held = _number(vhost)
        assert held.is_known(0, 3, is_seen=True)  # no message ever came
        await publish(client, "amq.default", "b", "12345")
        assert not held.is_known(0, 3, is_seen=False)
        for _ in range(2):
            assert list(held.read(0, 3, is_seen=True).ready) == [0, 1, 0]
        assert held.is_known(0, 3, is_seen=True)
        assert asked.count("b") == 1
        await publish(client, "amq.default", "b", "1")
        assert not held.is_known(0, 3, is_seen=True)
        assert list(held.read(0, 3, is_seen=True).body_bytes) == [0, 3, 0]
        assert asked.count("b") == 2
        await client.delete("/api/queues/%2F/b/contents")  # nothing came, but it was opened
        assert not held.is_known(0, 3, is_seen=True)
        found = held.read(0, 3, is_seen=True)
        assert (list(found.ready), list(found.oldest_ms)) == ([0, 0, 0], [0, 0, 0])
        assert found.newest_ms[1] > 0  # it is kept still


async def test_messages_that_a_consumer_has_are_told_each_time(tmp_path, asked):
    async with managed_gateway(tmp_path) as (gateway, client):
        vhost = gateway.doors["amqp"].vhost
        (queue,) = declare(gateway, "a")
        for body in ("1", "22", "333"):
            await publish(client, "amq.default", "a", body)
        held = _number(vhost)
        assert list(held.read(0, 1, is_seen=False).messages()) == [3]
        stored = vhost.stored
        assert queue.pop.take(stored, 2, 1 << 20, 0, 0) == 2
        offsets = stored.queue_offset[:2]
        found = held.read(0, 1, is_seen=True)
        assert (list(found.ready), list(found.unacked), list(found.messages())) == ([1], [2], [3])
        assert (list(found.body_bytes), held.is_known(0, 1, is_seen=False)) == ([3.0], False)
        queue.pop.ack_many(array("q", offsets), 2)
        found = held.read(0, 1, is_seen=False)
        assert (list(found.ready), list(found.unacked)) == ([1], [0])
        assert (list(found.given), list(found.again)) == ([3], [0])
        assert queue.pop.take(stored, 1, 1 << 20, 0, 0) == 1
        queue.pop.nack(stored.queue_offset[0])
        assert queue.pop.take(stored, 1, 1 << 20, 0, 0) == 1
        found = held.read(0, 1, is_seen=False)
        assert (list(found.again), queue.pop.again_count) == ([1], 1)
        assert (list(found.left()), list(found.delivered())) == ([2], [4])


async def test_what_is_told_of_one_queue_is_what_is_told_of_many(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        vhost = gateway.doors["amqp"].vhost
        queues = declare(gateway, "a", "b")
        await publish(client, "amq.default", "b", "12345")
        without_numbers = [HeldFigures(vhost).read_one(queue, is_seen=True) for queue in queues]
        held = _number(vhost)
        for _ in range(2):
            told = [held.read_one(queue, is_seen=True) for queue in queues]
            for one, other in zip(told, without_numbers, strict=True):
                assert [list(column) for column in one] == [list(column) for column in other]
            held.read(0, 2, is_seen=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_whatever_happens_to_queues_is_in_what_is_told_next(tmp_path, monkeypatch, seed):
    """Each queue is a list of bodies here; what the gateway tells is compared with it after each step."""
    monkeypatch.setattr(held_figures, "BLOCK", 4)  # so that queues are in several blocks
    monkeypatch.setattr("gateway.amqp.queue_figures.BLOCK", 4)
    draw, bodies, given = random.Random(seed), {}, {}
    names = [f"q{number}" for number in range(7)]
    for _ in range(3):  # the gateway is started again between two rounds
        async with managed_gateway(tmp_path) as (gateway, client):
            vhost = gateway.doors["amqp"].vhost
            for _ in range(25):
                await _do_one(draw, client, bodies, given, draw.choice(names))
                held = _number(vhost)
                begin = draw.randrange(len(vhost.rows)) if len(vhost.rows) else 0
                if draw.random() < 0.3 and begin < len(vhost.rows):
                    for _ in held.take_in(begin - begin % 4, min(begin - begin % 4 + 4, len(vhost.rows))):
                        pass
                _compare(vhost, held, bodies, given, is_seen=draw.random() < 0.7)


async def _do_one(draw, client, bodies, given, name):
    what = draw.choice(["publish", "publish", "publish", "get", "give back", "purge", "delete", "rule"])
    if name not in bodies:
        made = {"durable": True, "arguments": LEVELS if name == "q0" else {}}
        assert (await client.put(f"/api/queues/%2F/{name}", json=made)).is_success
        bodies[name], given[name] = [], 0
    elif what == "publish":
        body = "x" * draw.randrange(1, 40)
        await publish(client, "amq.default", name, body, {"delivery_mode": 2})
        bodies[name].append(len(body))
        given[name] += 1
    elif what in {"get", "give back"} and name != "q0":  # by its levels messages stay in their order here
        got = await _get(client, name, "ack_requeue_false" if what == "get" else "ack_requeue_true", 2)
        assert [one["payload_bytes"] for one in got] == bodies[name][:2]
        if what == "get":
            del bodies[name][:2]
    elif what == "purge":
        assert (await client.delete(f"/api/queues/%2F/{name}/contents")).is_success
        bodies[name] = []
    elif what == "delete":
        assert (await client.delete(f"/api/queues/%2F/{name}")).is_success
        del bodies[name]
    elif what == "rule":
        rule = {"pattern": f"^{name}$", "definition": {"max-length-bytes": 1 << 20}, "apply-to": "queues"}
        await client.put(f"/api/policies/%2F/{draw.choice('ab')}", json=rule)


def _compare(vhost, held, bodies, given, *, is_seen):
    queues, found = vhost.rows.queues, held.read(0, len(vhost.rows), is_seen=is_seen)
    rows = {queue.name: at for at, queue in enumerate(queues) if not queue.is_deleted}
    assert rows.keys() == bodies.keys()
    for name, at in rows.items():
        has = bodies[name]
        assert (name, found.ready[at], found.unacked[at]) == (name, len(has), 0)
        if name != "q0":  # its levels count from their own beginning
            assert (name, found.given[at]) == (name, given[name])
        if is_seen:
            assert (found.oldest_ms[at] > 0) is bool(has)
            # What was given back stands first, and is alone looked at then.
            assert min(has, default=0) <= found.body_bytes[at] <= max(has, default=0)
