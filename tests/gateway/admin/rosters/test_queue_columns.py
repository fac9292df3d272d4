from __future__ import annotations

import pytest

from gateway.admin.rosters.queue_columns import Flowing, Pacing, Standing, key_of
from tests.support.admin import declare, managed_gateway

pytestmark = pytest.mark.asyncio


async def test_a_column_says_of_one_queue_what_it_says_of_many(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, _):
        a, bb = declare(gateway, "a", "bb")
        vhost = gateway.doors["amqp"].vhost
        columns = (
            Standing(lambda queues: [len(queue.name) for queue in queues]),
            Flowing(lambda host, queue: (host is vhost) * len(queue.name)),
            Pacing(lambda queues, refs: [len(queue.name) for queue, _ in zip(queues(), refs, strict=True)]),
        )
        for column in columns:
            assert [key_of(column)((vhost, queue)) for queue in (a, bb)] == [1, 2]
