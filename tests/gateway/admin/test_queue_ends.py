from __future__ import annotations

import pytest

from gateway.admin.queue_ends import Ends, find_ends, find_ends_of
from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish

pytestmark = [pytest.mark.asyncio, pytest.mark.here(reason="the ends of a queue are told of messages that are here")]


async def test_the_oldest_and_the_newest_message_of_a_queue_are_told(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        (queue,) = declare(gateway, "jobs")
        broker, vhost = gateway.broker, gateway.doors["amqp"].vhost
        assert find_ends_of(broker, vhost, queue) == find_ends(broker, -1) == Ends()
        for body in ("1", "123"):
            await publish(client, "amq.default", "jobs", body)
        ref = broker.find_queue(queue.light_name)
        ends = find_ends_of(broker, vhost, queue)
        assert ends == find_ends(broker, ref)
        assert ends.body_bytes == 2
        assert 0 < ends.oldest_at_ms <= ends.newest_at_ms
        await client.delete("/api/queues/%2F/jobs/contents")
        assert find_ends_of(broker, vhost, queue) == Ends(None, ends.newest_at_ms, 0.0)
        assert find_ends(broker, ref).oldest_at_ms == ends.oldest_at_ms  # the log has it still
