"""What lies in many queues is known before anybody asks."""

from __future__ import annotations

import pytest

from gateway.admin import held_looks, steps
from gateway.admin.held_looks import HeldLooks
from gateway.admin.rosters.held_figures import HeldFigures
from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish
from tests.support.waiting import counted_turns

pytestmark = [pytest.mark.asyncio, pytest.mark.here(reason="what lies in queues is told of messages that are here")]


@pytest.mark.parametrize("many", [3, 4])
async def test_queues_are_known_after_a_look_where_there_are_many(tmp_path, monkeypatch, many):
    monkeypatch.setattr(held_looks, "MANY", many)
    now = [1_000.0]
    monkeypatch.setattr(held_looks, "monotonic", lambda: now[0])
    async with managed_gateway(tmp_path) as (gateway, client):
        vhost = gateway.doors["amqp"].vhost
        declare(gateway, "a", "b", "c")
        await publish(client, "amq.default", "b", "x")
        looks = HeldLooks(lambda: gateway.doors["amqp"].vhosts)
        assert looks.is_due()
        await looks.look()
        for _ in vhost.rows.take_in():
            pass
        held = HeldFigures(vhost)
        assert held.is_known(0, 3, is_seen=True) is (many == 3)
        assert not looks.is_due()
        now[0] += 3_600
        assert looks.is_due()


async def test_a_queue_that_is_consumed_from_is_left_to_the_questions(tmp_path, monkeypatch):
    monkeypatch.setattr(held_looks, "MANY", 1)
    async with managed_gateway(tmp_path) as (gateway, client):
        vhost = gateway.doors["amqp"].vhost
        a, _ = declare(gateway, "a", "b")
        for name in ("a", "b"):
            await publish(client, "amq.default", name, "x")
        assert a.pop.ready_count == 1
        await HeldLooks(lambda: gateway.doors["amqp"].vhosts).look()
        held = HeldFigures(vhost)
        assert [held.is_known(number, number + 1, is_seen=True) for number in range(2)] == [False, True]


async def test_very_many_virtual_hosts_with_few_queues_are_passed_by_in_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "STEP_S", 0.0)
    monkeypatch.setattr(held_looks, "PAUSE_S", 0.0)
    async with managed_gateway(tmp_path) as (gateway, _):
        vhosts = gateway.doors["amqp"].vhosts
        for number in range(50):
            vhosts.make(f"v{number}")
        async with counted_turns() as turns:
            await HeldLooks(lambda: vhosts).look()
        assert turns() >= 50
