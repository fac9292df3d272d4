from __future__ import annotations

import aio_pika
import pytest

from gateway.admin.explain import QuestionError
from gateway.admin.explain_queue import explain_queue
from gateway.amqp.policies import Policy
from tests.support.admin import declare, make_view
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio


async def test_all_ways_to_a_queue_are_told_with_what_it_holds(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        url = "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
            queue = await channel.declare_queue("q", durable=True, arguments=arguments)
            jobs = await channel.declare_exchange("jobs", "headers")
            await queue.bind("amq.topic", "a.*")
            await queue.bind(jobs, "", arguments={"x-match": "any", "kind": "new"})
            await jobs.bind("amq.fanout", "")
            await channel.default_exchange.publish(aio_pika.Message(b"1"), "q")
            found = explain_queue(make_view(gateway), "/", "q")
        assert found.light_queue == "%LMQ%amqp%|2f%q"
        assert found.bindings == ["(default) q", "amq.topic a.*", "jobs (any: kind)", "amq.fanout > jobs (any: kind)"]
        assert found.filters == ["a/+"]
        assert found.dead_letters == "(default) dead"
        assert (found.ready, found.unacked, found.first_offset, found.next_offset) == (1, 0, 0, 1)
        for vhost, name in (("/", "none"), ("none", "q")):
            with pytest.raises(QuestionError, match=r"no queue 'none' in vhost '/'|no vhost 'none'"):
                explain_queue(make_view(gateway), vhost, name)


async def test_policies_that_hold_are_told_with_where_dead_letters_go(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        vhosts = gateway.doors["amqp"].vhosts
        vhosts.put_policy(Policy("/", "dead", "^q$", {"dead-letter-exchange": "amq.fanout", "max-length": 9}))
        vhosts.put_policy(Policy("/", "few", "q", {"max-length": 3}, is_operator=True))
        (queue,) = declare(gateway, "q")
        found = explain_queue(make_view(gateway), "/", queue.name)
        assert (found.policy, found.operator_policy) == ("dead", "few")
        assert found.ruled == {"dead-letter-exchange": "amq.fanout", "max-length": 3}
        assert found.dead_letters == "amq.fanout"


async def test_light_queues_of_priorities_in_use_are_told(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        async with await aio_pika.connect("amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])) as connection:
            channel = await connection.channel()
            await channel.declare_queue("q", durable=True, arguments={"x-max-priority": 5})
            await channel.default_exchange.publish(aio_pika.Message(b"1", priority=3), "q")
        found = explain_queue(make_view(gateway), "/", "q")
        assert (found.levels, found.ready) == (["%LMQ%amqp%|y3%|2f%q"], 1)
