"""One AMQP queue: a light queue that its consumers share, each message to one of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import cast

from core.broker import Broker
from core.lmq.expiry import count_expired, expires_at, take_expired
from core.lmq.rota import Rota
from core.lmq.waiters import Reader
from core.message import AWAY, StoredBatch
from core.queues.full_queues import Room
from core.queues.levelled_queue import LevelledQueue
from gateway.amqp.deaths import DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED
from gateway.amqp.length_limit import find_excess, find_room
from gateway.amqp.policies import NOTHING, Ruling
from gateway.amqp.queue_arguments import KeptArguments, find_terms, is_quorum, is_stream
from gateway.amqp.queue_pops import QueuePops
from gateway.amqp.queue_ties import Burial, Expiries, QueueConsumer, Shared
from gateway.amqp.stream_trim import StreamTrim

TAKE_COUNT_MAX = 1_024  # as many as one batch of columns has: enough to make the cost of a batch vanish
TAKE_BYTES_MAX = 1 << 20  # a quarter of a turn's, so that no single take uses it up
HEAD_COUNT_MAX = 256  # messages looked at for expired ones in one go; chosen: a quarter of what is taken in one
DEAD_COUNT_MAX = 128  # dead letters made of expired ones in one turn: some milliseconds
TURN_BYTES_MAX = 4 << 20  # read for one queue in one turn; what is left waits for the next
_TAKE_COUNT_MAX = TAKE_COUNT_MAX
_TURN_BYTES_MAX = TURN_BYTES_MAX
# These three are shared by all queues that have none, and never written to: most queues of many are idle.
_NO_ARGUMENTS: KeptArguments = {}
_NOBODY: list[QueueConsumer] = []
_NO_ROTA: Rota[QueueConsumer] = Rota()


class SharedQueue(Reader):
    """A queue, its consumers, and the reader that hands its messages out in turn.

    Args:
        broker: Where the queue is parked.
        name: As clients call it.
        light_name: Its light queue.
        stored: The door's own batch to read into.
        durable: Whether it outlives the process.
        auto_delete: Whether it goes with its last consumer.
        owner: The connection that has it to itself, or None.
        arguments: What is kept of them, as it was declared.
        pops: Opens what is taken and done in it.
        burial: Takes its dead letters.
        expiries: Says when the first of them is due.
        ruling: What policies say of it.
    """

    __slots__ = (
        "_broker", "_burial", "_due_ms", "_expiries", "_fresh_from", "_is_away", "_is_dropping", "_is_parked",
        "_levels", "_pops", "_rota", "_stored", "_trim", "arguments", "consumers", "counts_deliveries", "first_offset",
        "has_dead_letters", "has_exclusive", "is_auto_delete", "is_deleted", "is_durable", "is_open", "is_passing",
        "is_stream", "is_watched", "lease_ms", "light_name", "limit_ms", "name", "opened", "owner", "row", "ruling",
        "streams", "terms",
    )  # fmt: skip

    def __init__(
        self,
        broker: Broker,
        name: str,
        light_name: bytes,
        stored: StoredBatch,
        *,
        durable: bool,
        auto_delete: bool,
        owner: object | None,
        arguments: KeptArguments,
        pops: QueuePops,
        burial: Burial,
        expiries: Expiries,
        ruling: Ruling = NOTHING,
    ) -> None:
        self.name = name
        self.light_name = light_name
        self.is_durable = durable
        self.is_auto_delete, self.owner = auto_delete, owner
        self.arguments = arguments or _NO_ARGUMENTS
        self._pops = pops
        self.hold_to(ruling)
        self.counts_deliveries = is_quorum(arguments)
        self.is_stream = is_stream(arguments)  # nobody consumes it
        self.consumers = _NOBODY
        self.streams = _NOBODY  # that read it without consuming
        self.first_offset = 0  # what lies before in the light queue was another's of this name
        self.has_exclusive = False  # one consumer has it to itself
        self.row, self.is_deleted = -1, False  # its number in lists of queues, -1 before it was given one
        self.is_open = False  # it is this gateway's, and its ends are known: before, nothing is asked of `pop`
        self.is_passing = False  # its light queue is another's when it is gone
        self._broker, self._burial = broker, burial
        self._expiries, self._stored = expiries, stored
        self._due_ms = -1  # when it is called next because its first message outlives its time, or -1
        self._trim = StreamTrim(broker) if self.is_stream else None
        self.opened: Shared | None = None  # `pop`, where it was asked for and does not rest
        self._levels: LevelledQueue | None = None  # the same, of a queue with priorities
        self._is_parked = False
        self._is_away = False  # what it was to hand out last is on its way
        self._is_dropping = False  # expired messages are to be dropped when they are here
        self._fresh_from = 0  # what lies before was there in an earlier turn
        self._rota = _NO_ROTA

    def hold_to(self, ruling: Ruling) -> None:
        """Hold to what its arguments and policies say together; what is open stays as it was until `reopen`."""
        self.ruling = ruling
        self.terms = terms = find_terms(self.arguments, ruling.definition)
        self.has_dead_letters = terms.dead_letter_exchange is not None
        self.is_watched = self.has_dead_letters or terms.has_length  # though nobody consumes
        self.limit_ms = terms.message_ttl_ms
        self.lease_ms = terms.unused_ms
        self._pops.tell_lifetime(self.light_name, terms, is_kept=is_stream(self.arguments))

    def reopen(self) -> None:
        """Open what is taken and done in it anew on next use, as its terms are now."""
        self.opened = self._levels = None

    @property
    def pop(self) -> Shared:
        """What is taken and done in it, opened on first use: a queue that nobody uses costs little."""
        if self.opened is None:
            self.opened = self._open(is_new=False)
            self._pops.note_opened(self)
        return self.opened

    def rest(self) -> None:
        """Keep no more than its place of what is taken and done, where nobody uses it and nothing is in flight."""
        if self.opened is not None and not (self._is_parked or self._is_dropping or self.terms.priority_max > 0):
            self.opened = None if self._pops.rest(self.light_name, self.terms) else self.opened

    def _open(self, *, is_new: bool) -> Shared:
        """Open it; a new one is empty."""
        terms = self.terms
        if terms.priority_max > 0:
            self._levels = self._pops.open_levels(self.light_name, terms, self._on_level, is_new=is_new)
            return self._levels
        is_new = is_new or not self._pops.knows(self.light_name)
        start = self.first_offset if is_new or terms.bytes_max < 0 else None  # where one that was never opened begins
        return self._pops.open(self.light_name, terms, start)

    def _on_level(self, queue_ref: int) -> None:
        """Read a level that is in use from now on."""
        if self._is_parked or self._is_dropping:
            self._broker.park(queue_ref, self)
            self._broker.request_run(self)

    def start_empty(self) -> None:
        """Begin after what the light queue holds: a new queue of an old name does not see the old one's messages."""
        self.first_offset = self._broker.max_offset(self._broker.intern_queue(self.light_name))
        self._pops.note_opened(self)  # who asked what lies in it before was told of another's of this name
        if self.is_watched or self.is_stream or self.terms.priority_max > 0:
            self.opened = self._open(is_new=True)  # any other is opened with its first message or consumer

    def watch(self) -> None:
        """Begin to take messages by their levels; look after what is too much or too old, where it is told to."""
        if self.terms.priority_max > 0:
            self._broker.detours.levels.add(self.pop.queue_ref, cast("LevelledQueue", self.pop))
        if self.is_watched:
            self._park()
            self.run_soon()

    def find_room(self, wanted: int) -> Room:
        """Return what it takes, also for consumers with room; `wanted` messages are enough."""
        return find_room(self.terms, self.pop, self.consumers, wanted)

    def refuse(self, count: int) -> None:
        """Count messages that found it full and are lost, and see whether the first of those it has are expired."""
        if not self.terms.buries_refused:
            self._broker.metrics.door("amqp").drop(MAXLEN.decode(), count)
        self.run_soon()

    def _park(self) -> None:
        if not self._is_parked:
            self._is_parked = True
            self._note_seen()
            self._at_each(self._broker.park)

    def _at_each(self, act: Callable[[int, Reader], None]) -> None:
        """Do something at each of its light queues."""
        for queue_ref in [self.pop.queue_ref] if self._levels is None else self._levels.refs:
            act(queue_ref, self)

    def _note_seen(self) -> None:
        """Note that what is there was there in an earlier turn."""
        if self._levels is None:
            self._fresh_from = self._broker.max_offset(self.pop.queue_ref)
        else:
            self._levels.note_seen()

    def delete(self, by: object = None) -> list[QueueConsumer]:
        """Tell the consumers, and forget what was taken and done.

        Those on the channel `by` are returned instead: they are told after the answer to the deleting client.
        """
        self.is_deleted = True
        told_later: list[QueueConsumer] = []
        for consumer in [*self.consumers, *self.streams]:
            consumer.on_queue_deleted()
            if by is not None and consumer.channel is by:
                told_later.append(consumer)
            else:
                consumer.tell_deleted()
        self.stop()
        if self.terms.priority_max > 0:
            self._broker.detours.levels.drop(self.pop.queue_ref)
        self._pops.drop(self.light_name, self.terms.priority_max)
        return told_later

    def add_consumer(self, consumer: QueueConsumer) -> None:
        """Hand messages to `consumer` too, from the next turn on."""
        if not self.consumers:
            self.consumers, self._rota = [], Rota()
        self.consumers.append(consumer)
        self._note_room(consumer)
        self._park()
        self.run_soon()

    def remove_consumer(self, consumer: QueueConsumer) -> None:
        """Hand it nothing more."""
        if consumer in self.consumers:
            was_first = self.consumers[0] is consumer
            self.consumers.remove(consumer)
            self._rota.remove(consumer, consumer.rank)
            if was_first and self.consumers and self.terms.is_single_active:
                self.note_room(self.consumers[0])
        if not self.consumers:
            self.consumers, self._rota = _NOBODY, _NO_ROTA
            if not self.is_watched:
                self.stop()
                self.rest()

    def stop(self) -> None:
        """Read no more."""
        if self._is_parked or self._is_dropping:
            self._is_parked = self._is_dropping = False
            self._at_each(self._broker.unpark)
        self._broker.cancel_run(self)

    def note_room(self, consumer: QueueConsumer) -> None:
        """Hand messages to a consumer again that had no room."""
        self._note_room(consumer)
        self.run_soon()

    def _note_room(self, consumer: QueueConsumer) -> None:
        """Let a consumer have its turn, unless another is the one that has messages."""
        if self.consumers and (not self.terms.is_single_active or self.consumers[0] is consumer):
            self._rota.note_room(consumer, consumer.rank)

    def run_soon(self) -> None:
        """Run in the next turn."""
        if (self.consumers or self.is_watched) and not self.is_deleted:
            self._broker.request_run(self)

    def on_ready(self, now_ms: int) -> bool:
        """Hand out what is there to consumers that have room, in turn."""
        if self._is_dropping:
            self._go_on_dropping(now_ms)
        self._is_away = False
        touched: dict[int, QueueConsumer] = {}
        budget = _TURN_BYTES_MAX
        while budget > 0 and not self.is_deleted:
            taken = self._hand_out(now_ms, touched)
            if taken <= 0:
                break
            budget -= taken
        if not self._is_away:
            self._note_seen()
        for consumer in touched.values():
            consumer.flush()
        if self.is_watched and not self.is_deleted:
            self._watch_first(now_ms)
        if budget <= 0:
            self.run_soon()
        return False

    def _watch_first(self, now_ms: int) -> None:
        """Let go of what is too much or too old, and have the queue called when the first message will be."""
        self.drop_expired(now_ms)
        stored = self._stored
        if not self.has_dead_letters or self.pop.ready_count <= 0 or self.pop.peek(stored, 1) <= 0:
            return
        due_ms = expires_at(stored, 0, self.limit_ms)
        stored.clear()
        if 0 <= due_ms <= now_ms:
            self.run_soon()
        elif due_ms >= 0 and (self._due_ms < 0 or due_ms < self._due_ms):
            self._due_ms = due_ms
            self._expiries.file(due_ms, self)

    def on_expiry(self, at_ms: int) -> None:
        """Run in the next turn: the time of the first message is over, as was asked for."""
        if at_ms == self._due_ms:
            self._due_ms = -1
            self.run_soon()

    def _hand_out(self, now_ms: int, touched: dict[int, QueueConsumer]) -> int:
        """Give each consumer with room a share; return about how many bytes went out, 0 when nothing did."""
        pop = self.pop
        rota = self._rota
        ready = pop.ready_count
        left = len(rota)
        if ready <= 0 or not left:
            return 0
        share = min((ready + left - 1) // left, _TAKE_COUNT_MAX)
        stored = self._stored
        total = 0
        while left > 0:
            left -= 1
            consumer = rota.first()
            if consumer is None:
                break
            count = pop.take(stored, min(consumer.room(), share), consumer.room_bytes(), 0, now_ms)
            if count <= 0:  # none, or on their way: it runs again when they are here
                self._is_away = count == AWAY
                break
            total += stored.record_end[count - 1] - stored.record_start[0]
            fresh_from = self._fresh_from
            if self._levels is not None:
                fresh_from = self._levels.fresh_from(stored.queue_offset[0])
            expired = take_expired(stored, now_ms, self.limit_ms, fresh_from)
            if expired:
                self.let_go(array("q", expired), len(expired), EXPIRED, now_ms)
            if not stored.count:
                continue
            touched[id(consumer)] = consumer
            consumer.deliver(stored)
            rota.step()
        stored.clear()
        return total

    def reader_count(self) -> int:
        """Return how many consumers it has."""
        return len(self.streams if self.is_stream else self.consumers)

    def ready_count(self, now_ms: int) -> int:
        """Return how many messages could be taken now; expired ones that come first are gone then."""
        if self.opened is None and self._pops.is_untouched(self.light_name, self.terms, self.first_offset):
            return 0
        self.drop_expired(now_ms)
        return self.pop.ready_count

    def drop_expired(self, now_ms: int) -> None:
        """Finish messages that are more than the queue holds, and expired ones that come before the first that is not.

        Of those that are dead letters, at most some hundred in one go; the others have their turns soon. What is on its
        way goes when it is here.
        """
        if self._trim is not None:
            self._trim.run(self.pop, self.terms, now_ms)
            return
        stored = self._stored
        if self.terms.has_length and not self.terms.is_refusing:
            self._drop_oldest(now_ms)
        count = 1
        left = DEAD_COUNT_MAX if self.has_dead_letters else 1 << 62
        while left > 0 and self.pop.ready_count > 0:
            found = self.pop.peek(stored, count)
            expired = count_expired(stored, now_ms, self.limit_ms)
            taken = self.pop.take(stored, expired, 1 << 40, 0, now_ms) if expired else 0
            if AWAY in {found, taken}:
                self._is_dropping = True
                self._at_each(self._broker.park)
                return
            offsets = array("q", stored.queue_offset[: max(taken, 0)])
            stored.clear()
            if offsets:
                self.let_go(offsets, len(offsets), EXPIRED, now_ms)
            left -= len(offsets)
            if not offsets or expired < found:
                return
            count = min(HEAD_COUNT_MAX, left)

    def _go_on_dropping(self, now_ms: int) -> None:
        self._is_dropping = False
        self.drop_expired(now_ms)
        if not self._is_dropping and not self._is_parked:
            self._at_each(self._broker.unpark)

    def _drop_oldest(self, now_ms: int) -> None:
        """Finish messages that are more than the queue holds, some in one go; the others have their turns soon."""
        stored = self._stored
        if self._is_away and self.consumers:  # they have room, and get the oldest when it is here
            return
        most = DEAD_COUNT_MAX if self.has_dead_letters else _TAKE_COUNT_MAX
        excess = find_excess(self.terms, self.pop, stored, most)
        if excess <= 0:
            return
        taken = max(self.pop.take(stored, excess, 1 << 40, 0, now_ms), 0)
        offsets = array("q", stored.queue_offset[:taken])
        stored.clear()
        if taken:
            self.let_go(offsets, taken, MAXLEN, now_ms)
            self.run_soon()

    def reject(self, offsets: array[int], count: int, now_ms: int) -> None:
        """Finish messages that a consumer rejected for good."""
        self.let_go(offsets, count, REJECTED, now_ms)

    def give_back(self, offsets: array[int], count: int, now_ms: int) -> None:
        """Show messages again that a consumer gave back, but for those that were given too often."""
        limit = self.terms.delivery_limit
        if limit >= 0:
            spent = array("q", [offset for offset in offsets[:count] if self.pop.attempt(offset) > limit])
            if spent:
                rest = sorted(set(offsets[:count]).difference(spent))
                self.let_go(spent, len(spent), DELIVERY_LIMIT, now_ms)
                offsets, count = array("q", rest), len(rest)
        self.pop.nack_many(offsets, count)

    def let_go(self, offsets: array[int], count: int, reason: bytes, now_ms: int) -> None:
        """Finish messages that no consumer will have, or let them go on as dead letters."""
        self._pops.note_ended(self.light_name, offsets, count, reason, now_ms, is_lost=not self.has_dead_letters)
        if self.has_dead_letters:
            self._burial.bury(self, offsets, count, reason, now_ms)
        else:
            self._pops.finish(self.pop, offsets, count, reason, now_ms)
