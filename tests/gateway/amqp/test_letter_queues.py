from __future__ import annotations

import pytest

from gateway.amqp.letter_queues import find_letter_queues
from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio


async def test_letters_come_to_the_queue_of_their_key_or_to_what_the_exchange_leads_to(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):

        async def declare(name, **arguments):
            said = {f"x-dead-letter-{part.replace('_', '-')}": value for part, value in arguments.items()}
            await client.put(f"/api/queues/%2F/{name}", json={"durable": True, "arguments": said})
            return vhost.find(name)

        vhost = gateway.doors["amqp"].vhost
        jobs = await declare("jobs", exchange="", routing_key="dead")
        lost = await declare("lost", exchange="nowhere")
        await client.post("/api/bindings/%2F/e/amq.fanout/q/jobs", json={})
        spread = await declare("spread", exchange="amq.fanout")
        found = [find_letter_queues(vhost, queue, {}) for queue in (jobs, lost, spread)]
        assert found == [["dead"], [], ["jobs"]]
