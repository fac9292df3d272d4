"""How the transaction of a half message ended, by the records of the log that say which half messages are done with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from core.broker import Broker
from core.message import StoredBatch
from core.properties import UNIQ_KEY, WAITING_FOR, decode_properties
from gateway.admin.asking import ask, open_queue, read_on
from gateway.admin.steps import Steps
from gateway.inventory import text_of
from gateway.rocketmq.delay import REAL_QUEUE, REAL_TOPIC
from gateway.rocketmq.topic_table import GIVEN_UP_TOPIC, queue_key
from gateway.rocketmq.transactions.half import find_letter

READ_COUNT = 64  # records read together, which are short
LOOKED_AT_MAX = 20_000  # records of one queue, as of dead letters
OUTCOMES = {
    b"c": "its transaction was committed",
    b"r": "its transaction was rolled back",
    b"g": "its transaction was given up: nobody said how it ended",
}


class TransactionEnd(NamedTuple):
    """How a transaction ended."""

    outcome: str
    at_ms: int
    became: str  # the number of the message that consumers get, or that was given up; empty where it is not found
    light_queue: str  # where that is

    @property
    def note(self) -> str:
        """What else is to be known."""
        return f"as message {self.became} in {self.light_queue}" if self.became else ""


async def find_transaction_end(
    broker: Broker, done_queue: bytes, offset: int, half: Mapping[bytes, bytes], from_ms: int
) -> TransactionEnd | None:
    """Return how the transaction of a half message ended; None where the log does not say.

    Args:
        broker: Where it is.
        done_queue: The queue of the records that say which half messages are done with.
        offset: Of the half message in its queue.
        half: Its properties.
        from_ms: When it was stored.
    """
    async for batch, i in _walk(broker, done_queue, from_ms):
        body = bytes(batch.buf[batch.body_start[i] : batch.body_end[i]])
        encoded = bytes(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
        letter = find_letter(body, encoded, offset)
        if letter is not None:
            if letter not in OUTCOMES:
                return None
            at_ms, place = batch.store_ms[i], batch.physical_offset[i]
            queue = _goes_to(half, letter)
            became = await _find_own(broker, queue, half.get(UNIQ_KEY, b""), at_ms, place) if queue else ""
            return TransactionEnd(OUTCOMES[letter], at_ms, became, text_of(queue))
    return None


def _goes_to(half: Mapping[bytes, bytes], letter: bytes) -> bytes:
    """Return the queue in which what a half message became is looked for; empty for none, and for the topic space."""
    if letter == b"r" or half.get(WAITING_FOR):
        return b""
    if letter == b"g":
        return queue_key(GIVEN_UP_TOPIC, 0)
    topic, queue_id = half.get(REAL_TOPIC, b""), half.get(REAL_QUEUE, b"")
    return queue_key(topic, int(queue_id)) if topic and queue_id.isdigit() else b""


async def _find_own(broker: Broker, queue: bytes, key: bytes, at_ms: int, place: int) -> str:
    """Return the number of the message that was stored in one batch with the record that says how it ended.

    It has the same moment and key and lies before that record. Empty where there is not just one such message.
    """
    found: list[int] = []
    async for batch, i in _walk(broker, queue if key else b"", at_ms):
        if batch.store_ms[i] > at_ms or batch.physical_offset[i] > place:
            break
        encoded = bytes(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
        if decode_properties(encoded).get(UNIQ_KEY) == key:
            found.append(batch.physical_offset[i])
    return str(found[0]) if len(found) == 1 else ""


async def _walk(broker: Broker, queue: bytes, from_ms: int) -> AsyncIterator[tuple[StoredBatch, int]]:
    """Give the messages of a queue that were stored from a moment on: a batch, and the row in it."""
    queue_ref = broker.find_queue(queue)
    if queue_ref < 0:
        return
    await open_queue(broker, queue_ref)
    offset = max(await ask(lambda then: broker.find_offset(queue_ref, from_ms, then)), broker.min_offset(queue_ref))
    batch, steps, looked_at = StoredBatch(READ_COUNT), Steps(), 0
    while looked_at < LOOKED_AT_MAX:
        count = await read_on(broker, queue_ref, offset, batch)
        if not count:
            return
        for i in range(batch.count):
            yield batch, i
        looked_at, offset = looked_at + count, batch.next_offset
        await steps.rest()
