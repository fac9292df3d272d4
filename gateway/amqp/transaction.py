"""What a transactional channel has published and settled and not yet committed (class tx).

Publishes are kept with their own bytes, as the buffer that they came in is used again. Acknowledgements are kept by the
channel's ring of unacknowledged deliveries: until the commit they count as unacknowledged.

Source: docs/protocols/amqp.md, "Transactions".
"""

from __future__ import annotations

from typing import NamedTuple

from core.message import PublishBatch
from gateway.amqp.channel import Channel
from gateway.amqp.events import PublishRun

MESSAGE_BYTES = 400  # what keeping a message takes besides its bytes
STEP_MESSAGES = 1_024  # that one append takes


class Held(NamedTuple):
    """One message that waits for its commit."""

    topic: bytes
    copies: tuple[bytes, ...]
    tag: int
    flag: int
    extra: bytes
    body: bytes


class Transaction:
    """What one transactional channel did since its last commit or rollback."""

    def __init__(self, channel: Channel) -> None:
        self.is_committing = False  # what is published is not known to be stored
        self._channel = channel
        self._held: list[Held] = []
        self._bytes = 0
        self._published = 0  # how many of a commit under way are
        self._ticket = 0  # of the newest of them
        self._refused = 0  # of them, those that a queue without room did not take
        channel.unacked.held = {}

    def hold(self, run: PublishRun) -> None:
        """Keep the publishes of a run.

        Raises:
            AmqpError: RESOURCE_ERROR: the connection keeps too much of messages that are not complete.
        """
        batch = run.batch
        for i in range(batch.count):
            at = batch.route_index[i]
            held = Held(
                batch.topics[at],
                run.copies.get(at, ()),
                batch.tag[i],
                batch.flag[i],
                bytes(batch.extra[batch.extra_start[i] : batch.extra_end[i]]),
                bytes(batch.buf[batch.body_start[i] : batch.body_end[i]]),
            )
            size = MESSAGE_BYTES + len(held.extra) + len(held.body)
            self._held.append(held)
            self._bytes += size
            self._channel.incomplete.add(size)

    def next_step(self) -> PublishRun | None:
        """Return the next messages of a commit, as a run; None where all are published."""
        held = self._held[self._published : self._published + STEP_MESSAGES]
        return make_run(self._channel, held) if held else None

    def note_published(self, run: PublishRun, refused: int) -> bool:
        """Take note that the messages that are left in the batch of a step are published; return whether more are.

        `refused`: so many of them a queue without room did not take.
        """
        self._published += run.batch.count
        self._refused += refused
        self._ticket = run.batch.ticket
        return self._published < len(self._held)

    def finish(self) -> tuple[int, int, dict[int, int]]:
        """End a commit of which all is published, and begin anew; it is under way until the caller says otherwise.

        Returns:
            The ticket of what was published, 0 where nothing was; how many of it were refused; and what was settled,
            kind by tag.
        """
        ticket, refused = self._ticket, self._refused
        settled = self._channel.unacked.held or {}
        self.roll_back()
        self.is_committing = True
        return ticket, refused, settled

    def roll_back(self) -> None:
        """Forget what was published and settled, and begin anew."""
        self._channel.incomplete.size -= self._bytes
        self._held.clear()
        self._bytes = self._published = self._ticket = self._refused = 0
        self._channel.unacked.held = {}


def make_run(channel: Channel, held: list[Held]) -> PublishRun:
    """Return a run of messages, in a batch of their own; those with the same topic and copies share a topic of it."""
    batch = PublishBatch(len(held))
    index: dict[tuple[bytes, tuple[bytes, ...]], int] = {}
    body_end = extra_end = 0
    topics, route_index, tag, flag = batch.topics, batch.route_index, batch.tag, batch.flag
    body_starts, body_ends = batch.body_start, batch.body_end  # each look at a column makes an object
    extra_starts, extra_ends = batch.extra_start, batch.extra_end
    for i, one in enumerate(held):
        at = index.setdefault((one.topic, one.copies), len(index))
        if at == len(topics):
            topics.append(one.topic)
        route_index[i] = at
        body_starts[i], extra_starts[i] = body_end, extra_end
        body_end += len(one.body)
        extra_end += len(one.extra)
        body_ends[i], extra_ends[i] = body_end, extra_end
        tag[i], flag[i] = one.tag, one.flag
    batch.buf = b"".join([one.body for one in held])
    batch.extra = b"".join([one.extra for one in held])
    batch.count = len(held)
    run = PublishRun.__new__(PublishRun)
    run.channel = channel
    run.pool = None
    run.batch = batch
    run.count = batch.count
    run.mandatory_count = 0
    run.body_bytes = body_end
    run.first_number = 0
    run.copies = {at: copies for (_, copies), at in index.items() if copies}
    return run
