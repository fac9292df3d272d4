"""The one door of the core: fronts publish, read, wait and consume here, and the runtime turns it.

Nothing here waits or knows the time. The runtime sets `schedule`, called when readers have work, upon which it calls
`run_turn` once at the end of its turn; and `request_timer`, called when `next_deadline_ms` has become earlier, at which
it calls `handle_timer`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from core.cache_budget import CacheBudget
from core.cut_back import cut_back, keep_first
from core.engine import Engine, EngineFigures, Found, FoundRecord, Holder, Outcome, Places, Table
from core.flows import Flows
from core.lmq.called import LongNames
from core.lmq.consumer_offsets import ConsumerOffsets
from core.lmq.explained import ExplainedQueue
from core.lmq.lifetimes import Lifetimes
from core.lmq.retained import RetainedMessages
from core.lmq.retaining import Retaining
from core.lmq.router import Router
from core.message import KeySearch, PublishBatch, Route, StoredBatch
from core.metrics import Metrics
from core.pop.lasting_endings import LastingEndings
from core.pop.pop_service import PopService
from core.properties import TOPIC, encode_properties
from core.queues.detours import Detours
from core.reader_turns import ReaderTurns
from core.record_journal import RecordJournal
from core.row_format import FIRST, RowFormat
from core.schedule.timer import Timer
from core.schedule.waiting_copies import WaitingCopies


def _nothing() -> None:
    return


class Broker(ReaderTurns):
    """Publish, read, pop, acknowledge and subscribe over one engine.

    Args:
        engine: What keeps messages and definitions.
        parent_topic: The topic that MQTT and AMQP messages are stored on.
        metrics: Counters to add to.
        caches: Bounds what is kept only to be quick, here and in the fronts; None for the usual bound.
    """

    def __init__(
        self, engine: Engine, *, parent_topic: bytes, metrics: Metrics, caches: CacheBudget | None = None
    ) -> None:
        super().__init__(engine)
        self.caches = CacheBudget() if caches is None else caches
        self.parent_topic = parent_topic
        self.metrics = metrics
        self.room = engine.room
        self.long_names = LongNames(engine.table("long_names"), lambda: not engine.room.is_low)
        self.request_timer: Callable[[], None] = _nothing
        self.router = Router(self._make_topic_route, self.caches)
        self.retained = RetainedMessages(engine.table("retained"), engine.record_version)
        self.consumer_offsets = ConsumerOffsets(engine.table("consumer_offsets"), engine.places("consumer_offsets"))
        self.lasting_endings = LastingEndings(engine.journal("endings"))
        on_pop = self._on_shown, self._on_armed, self.when_kept
        self.pop = PopService(engine, engine.journal("pop"), *on_pop, consumers=engine.table("pop_consumers"))
        self.cut_back()
        self._retaining = Retaining(engine, self.retained)
        self._retaining.catch_up()
        self.lifetimes = Lifetimes()
        self.detours = Detours(engine.make_route)
        self._limited = self.detours.full.asked  # most often none: nothing is asked then
        self._levelled = self.detours.levels.asked  # nor of these
        self._standing = self.detours.crossroads.asked  # nor of these
        self.flows = Flows()
        self._has_due = False  # `handle_timer` had more to do than fits one turn
        self.timer = Timer(self)
        self._waiting_copies = WaitingCopies(engine)

    # Routes

    def route_topic(self, topic: bytes) -> Route:
        """Return the route of a topic of the one topic space, in MQTT's form; a cache answers most calls."""
        return self.router.route(topic)

    def route_queues(self, prefix: bytes, queues: Sequence[bytes]) -> Route:
        """Return a route on the parent topic to `queues`, with encoded properties of its own; the caller keeps it."""
        return self.engine.make_route(self.parent_topic, 0, prefix, queues)

    def route_rocketmq(self, topic: bytes, queue_id: int, dispatch: Sequence[bytes], prefix: bytes = b"") -> Route:
        """Return a route to queue `queue_id` of a RocketMQ topic and to the light queues `dispatch`.

        `prefix` holds encoded properties that its messages begin with.
        """
        return self.engine.make_route(topic, queue_id, prefix, dispatch)

    def _make_topic_route(self, topic: bytes, queues: Sequence[bytes]) -> Route:
        return self.route_queues(encode_properties([(TOPIC, topic)]), queues)

    def bind_filter(self, topic_filter: bytes, queue: bytes, *, hides_dollar: bool) -> None:
        """Let messages whose topic matches go to the light queue `queue` from now on; bindings are counted."""
        self.router.bind(topic_filter, queue, hides_dollar=hides_dollar)

    def unbind_filter(self, topic_filter: bytes, queue: bytes) -> None:
        """Take back one `bind_filter`."""
        self.router.unbind(topic_filter, queue)

    def explain(self, topic: bytes) -> list[ExplainedQueue]:
        """Return the light queues that a publish to `topic` would reach now, sorted by name."""
        return [self.explain_queue(name, filters) for name, filters in self.router.explain(topic).items()]

    def explain_queue(self, name: bytes, filters: dict[bytes, int]) -> ExplainedQueue:
        """Return a light queue, which these filters lead to, with its readers and where it goes on."""
        queue_ref = self.engine.find_queue(name)
        if queue_ref < 0:
            return ExplainedQueue(name, filters, 0, 0)
        return ExplainedQueue(name, filters, self.reader_count(queue_ref), self.engine.max_offset(queue_ref))

    # Publish

    @property
    def message_bytes_max(self) -> int:
        """The longest body that is taken."""
        return self.engine.message_bytes_max

    @property
    def store_host(self) -> bytes:
        """Address and port that records are stamped with: 4 or 16 bytes, then 4."""
        return self.engine.store_host

    @property
    def named_address(self) -> tuple[str | None, int | None]:
        """The host and port to stamp records with, as far as the engine's own settings name them."""
        return self.engine.named_address

    def set_store_host(self, store_host: bytes) -> None:
        """Stamp records from now on with this address and port."""
        self.engine.set_store_host(store_host)

    @property
    def end_place(self) -> int:
        """The place of the next message; see `Engine`."""
        return self.engine.end_place

    @property
    def sure_place(self) -> int:
        """The place before which all is there that was stored; see `Engine`."""
        return self.engine.sure_place

    @property
    def waits_for_disk(self) -> bool:
        """Whether what was answered is there after a power cut; see `Engine`."""
        return self.engine.waits_for_disk

    @property
    def next_version(self) -> int:
        """A number above the versions of all retained messages so far."""
        return self.engine.next_version

    def publish_batch(self, batch: PublishBatch, now_ms: int) -> None:
        """Append the messages of `batch` that have a route, and wake their readers; full queues are passed by.

        Whether they are stored is told by `when_stored(batch.ticket, ...)`, also of those before an error.

        Raises:
            DiskFullError, MessageTooLargeError: `batch.appended` messages got through, the rest did not.
            StoreClosedError: Nothing is taken any more.
        """
        if is_limited := len(self._limited) + len(self._levelled) + len(self._standing) > 0:
            self.detours.divert(batch, now_ms)
        try:
            if batch.waits:
                self._waiting_copies.append(batch, now_ms)
            else:
                self.engine.append_batch(batch, now_ms)
        finally:
            if is_limited:
                self.detours.restore(batch)
            if batch.retained_count:
                self._retaining.take_in(batch)
            self._wake_up()  # also after an error: what came before it is in the log

    def keep_together(self, on: bool) -> None:  # noqa: FBT001  # a switch
        """Have what is published until it is switched off be there whole, or not at all; see `Engine`."""
        self.engine.keep_together(on)

    def _on_armed(self) -> None:
        self.request_timer()

    # Queues

    def intern_queue(self, name: bytes) -> int:
        """Return the number of the light queue `name`, made on first use; its ends may not be known yet."""
        return self.engine.intern_queue(name)

    def open_queue(self, queue_ref: int, then: Outcome) -> None:
        """Call back when the ends of a queue are known, at once or later, or with an error; see `Engine.open_queue`."""
        self.engine.open_queue(queue_ref, then)

    def find_queue(self, key: bytes) -> int:
        """Return the number of a light queue, or of a topic's queue (`topic/0`), or -1."""
        return self.engine.find_queue(key)

    def queue_key(self, queue_ref: int) -> bytes:
        """Return the key that `queue_ref` stands for."""
        return self.engine.queue_key(queue_ref)

    def queue_lines(self, first: int, end: int, prefix: bytes) -> bytes:
        """Return the keys of the numbers from `first` to before `end` without their prefix, a line break before each.

        Nothing where one of them is not there, has another prefix or a line break.
        """
        return self.engine.queue_lines(first, end, prefix)

    def queue_count(self) -> int:
        """Return how many queues there are: their numbers are those below."""
        return self.engine.queue_count()

    def min_offset(self, queue_ref: int) -> int:
        """Return the first offset that is kept."""
        return self.engine.min_offset(queue_ref)

    def max_offset(self, queue_ref: int) -> int:
        """Return the next offset to be given."""
        return self.engine.max_offset(queue_ref)

    def find_offset(self, queue_ref: int, at_ms: int, then: Found, *, upper: bool = False) -> None:
        """Tell `then` the first offset stored at `at_ms` or later (`upper`: the last one stored until then).

        At once or later, and -1 where it cannot be told.
        """
        self.engine.find_offset(queue_ref, at_ms, then, upper=upper)

    def read(self, queue_ref: int, offset: int, into: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Read on in one queue; see `Engine.read`."""
        return self.engine.read(queue_ref, offset, into, count_max, bytes_max)

    def read_offsets(self, queue_ref: int, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Read chosen messages of one queue; see `Engine.read_offsets`."""
        return self.engine.read_offsets(queue_ref, offsets, count, into)

    def find_keyed(self, search: KeySearch) -> bool:
        """Answer which messages of a queue may have a key; see `Engine.find_keyed`."""
        return self.engine.find_keyed(search)

    def find_record(self, place: int, then: FoundRecord) -> None:
        """Tell `then` the record at a place, None where none is served; at once or later."""
        self.engine.find_record(place, then)

    def bytes_since(self, place: int) -> int:
        """Return about how many bytes were stored since the message at a place."""
        return self.engine.bytes_since(place)

    def replay_from(self, place: int, take_in: Callable[[StoredBatch], int]) -> int:
        """Give `take_in` what was stored from a place on; see `Engine.replay_from`."""
        return self.engine.replay_from(place, take_in)

    def read_record(self, record: bytes, into: StoredBatch) -> bool:
        """Fill `into` with a record that was copied out of the log, such as a retained one; False where it is none."""
        return self.engine.read_record(record, into)

    def find_retained(self, version: int, then: FoundRecord) -> None:
        """Tell `then` the record of a message that is or was retained, also after it was replaced.

        None where it is nowhere any more; at once or later.
        """
        self._retaining.find(version, then)

    def claim(self, key: bytes, then: Outcome) -> None:
        """Call back when a session or shared queue is this gateway's alone; see `Engine.claim`."""
        self.engine.claim(key, then)

    def release(self, key: bytes) -> None:
        """Take a `claim` back, so that another gateway may have it."""
        self.engine.release(key)

    def table(self, name: str, rows: RowFormat = FIRST) -> Table:
        """Return the durable table `name`; its changes are covered by `when_kept`."""
        return self.engine.table(name, rows)

    def check_room(self, row_bytes: int = 0) -> None:
        """Check that a definition made now is likely to be kept soon; see `Engine.check_room`."""
        self.engine.check_room(row_bytes)

    def check_commits(self) -> None:
        """Check that a deletion made now is likely to be kept soon; see `Engine.check_commits`."""
        self.engine.check_commits()

    def places(self, name: str) -> Places:
        """Return the file of places `name`: numbers that change per message and survive a killed process."""
        return self.engine.places(name)

    def journal(self, name: str) -> RecordJournal:
        """Return the journal `name`."""
        return self.engine.journal(name)

    # Turns

    def run_turn(self, now_ms: int) -> None:
        """Run each reader that has work, then what the engine has to do; see `ReaderTurns.run_readers`."""
        self.has_work = False  # before the readers: what one of them asks for then begins another turn
        if self._has_due:
            self.handle_timer(now_ms)  # before the readers too: they hand out what it shows in this turn
        self.run_readers(now_ms)
        if self.engine.step(now_ms):  # behind what they send, which clients wait for
            self._wake_up()

    def next_deadline_ms(self) -> int | None:
        """Return when `handle_timer` is wanted, or None while nothing has a deadline."""
        return self.pop.next_deadline_ms()

    def handle_timer(self, now_ms: int) -> None:
        """End the invisible times that are over: their messages are ready again, very many of them turn by turn."""
        self._has_due = not self.pop.expire(now_ms)
        if self._has_due:
            self._wake_up()

    # Durability

    @property
    def is_failed(self) -> bool:
        """Whether nothing can be promised any more."""
        return self.engine.is_failed

    def when_stored(self, ticket: int, then: Outcome) -> None:
        """Call back when the batch that has this ticket is safe, or lost; see `Engine.when_stored`."""
        self.engine.when_stored(ticket, self._waiting_copies.tie(ticket, then))

    def when_durable(self, then: Outcome) -> None:
        """Call back when all messages and acknowledgements so far are safe; see `Engine.when_durable`."""
        self.engine.when_durable(then)

    def cut_back(self) -> None:
        """Have no pop queue and no group further than its queue goes, as soon as the end of that is known."""
        cut_back(self.engine, self.pop, self.consumer_offsets)

    def keep_first(self) -> None:
        """Have all that was written so far durable before what is stored from now on is called safe."""
        keep_first(self.engine)

    def when_kept(self, then: Outcome) -> None:
        """Call back when all changes of tables so far are kept; see `Engine.when_kept`."""
        self.engine.when_kept(then)

    # Retention

    def hold(self, positions: Holder) -> None:
        """Keep what `positions` names from retention: pairs of a queue and the first offset that is still needed."""
        self.engine.hold(positions)

    def retire(self, now_ms: int) -> int:
        """Let go of what is past its age or over the size and needed by nobody; return how many segments went.

        Takes about 1 ms; what is left goes on in the turns that follow, and counts for the next call.
        """
        count = self.engine.retire(now_ms)
        self._wake_up()
        return count

    def figures(self) -> EngineFigures:
        """Return what the engine tells operators."""
        return self.engine.figures()
