from __future__ import annotations

import pytest

from gateway.admin import oldest
from gateway.admin.oldest import OldestMessages
from gateway.amqp.field_table import Field
from gateway.inventory import QueueEntry
from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish


class Log:
    """Messages by queue and offset, each with the moment at which it was stored."""

    def __init__(self, moments):
        self.moments = moments
        self.reads = 0

    def read(self, queue_ref, offset, into, count_max, bytes_max):
        self.reads += 1
        into.count = int((queue_ref, offset) in self.moments)
        into.store_ms[0] = self.moments.get((queue_ref, offset), 0)
        return into.count


def queue(name, *first_waiting):
    return QueueEntry(name, "", 0, 9, 0, ready=1, first_waiting=first_waiting)


def test_the_first_of_all_levels_counts_and_is_read_once():
    log = Log({(1, 5): 3_000, (2, 7): 2_000})
    ages = OldestMessages(log)
    ages.begin()
    assert ages.stored_ms(queue("a", (1, 5), (2, 7))) == 2_000
    assert ages.stored_ms(queue("gone", (3, 1))) == 0
    reads = log.reads
    ages.begin()
    assert ages.stored_ms(queue("a", (1, 5), (2, 7))) == 2_000
    assert log.reads == reads
    assert ages.stored_ms(queue("a", (1, 5))) == 3_000


def test_a_walk_reads_so_many_and_goes_by_what_it_knew_for_the_rest(monkeypatch):
    monkeypatch.setattr(oldest, "LOOKS_MAX", 1)
    ages = OldestMessages(Log({(1, 0): 1_000, (1, 1): 1_001, (2, 0): 2_000}))
    ages.begin()
    assert [ages.stored_ms(queue("a", (1, 0))), ages.stored_ms(queue("b", (2, 0)))] == [1_000, 0]
    ages.begin()
    assert [ages.stored_ms(queue("b", (2, 0))), ages.stored_ms(queue("a", (1, 1)))] == [2_000, 1_000]
    ages.begin()
    assert ages.stored_ms(queue("a", (1, 1))) == 1_001


@pytest.mark.asyncio
@pytest.mark.here(reason="a list tells of the oldest message that is here")
async def test_queues_are_ordered_by_their_first_message_that_is_not_done(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "young", "old", "empty")
        levels = {"x-max-priority": Field("signedint", 3)}
        declare(gateway, "levelled", arguments=levels)
        for name in ("levelled", "old", "young"):
            await publish(client, "amq.default", name, "x")
        await client.get("/metrics")
        view = client._transport.app.state.view
        found = view.totals.latest.oldest
        assert [entry.name for entry, _ in found][:1] == ["levelled"]
        assert {entry.name for entry, _ in found} == {"levelled", "old", "young"}
        assert [moment for _, moment in found] == sorted(moment for _, moment in found)
        assert gateway.clock.now_ms() - 60_000 < found[0][1] <= gateway.clock.now_ms()
