"""Messages by the batch: columns of positions into one buffer, in (`PublishBatch`) and out (`StoredBatch`).

A batch is made once and used again for each run of messages; nothing in it outlives the call that it is handed to.
Columns have `capacity` places, of which the first `count` mean something. Bodies are never copied into a batch.
"""

from __future__ import annotations

from array import array

from core import untracked

KEYED_MAX = 1_024  # what a search for a key finds at once: 8 KiB of offsets
AWAY = -2  # of a read: the messages are on their way, and the readers of their queue are woken when they are here
FLAG_MARK = 0x4C4D0000  # "LM" in the upper half of a record's flag: the lower half holds the bits below
FLAG_MARK_MASK = 0x7FFF0000
FLAG_QOS_MASK = 0x3  # the publisher's QoS: AMQP delivery mode 2 and RocketMQ count as 1
FLAG_RETAIN = 0x4
FLAG_EXPIRES = 0x8  # the properties say how long the message lives
FLAG_BARE = 0x10  # the properties say nothing but the topic and the publisher
STEP_DISPATCHES = 50_000  # what one step of work writes into light queues: half a millisecond and more
RETAINED_DISPATCHES = 500  # what a retained message costs besides, in entries of light queues
_FLAG_RETAIN = FLAG_RETAIN
_STEP_DISPATCHES = STEP_DISPATCHES
_RETAINED_DISPATCHES = RETAINED_DISPATCHES
_NOTHING = b""
REF_BLOCK = 64  # refs in one piece of memory, which is kept while one of them lives
# Measured, compiled and not, with the place in the store's table of sets that are in use (tests/core/test_message.py).
DISPATCH_BYTES = 500  # of a set without names
NAME_BYTES = 56  # of a name in a set, besides its letters: the object, its place in two lists, its ref
ROUTE_BYTES = 168  # of a route without its set, besides its letters


def _ints(capacity: int) -> array[int]:
    return array("i", bytes(4 * capacity))


def _longs(capacity: int) -> array[int]:
    return array("q", bytes(8 * capacity))


class RefRoom:
    """Room for the refs of many sets side by side: an array of its own takes 250 bytes, and most sets have one ref."""

    def __init__(self) -> None:
        self._block = _ints(0)
        self._used = 0

    def put(self, refs: list[int]) -> array[int]:
        """Return a copy of `refs`; its block is kept for as long as any that lies in it."""
        count = len(refs)
        if count > REF_BLOCK // 8:
            return array("i", refs)
        if self._used + count > len(self._block):
            self._block = _ints(REF_BLOCK)
            self._used = 0
        start = self._used
        self._used = start + count
        for k in range(count):
            self._block[start + k] = refs[k]
        return self._block[start : start + count]


class DispatchSet:
    """The light queues that a message goes to, made once by the store and shared by every route with the same ones.

    `names` are distinct and in the order of `queue_refs`. `text` is what a record with an inline dispatch carries up
    to the offsets; of an interned one, the names as its own record holds them. The store keeps the rest to itself.
    """

    def __init__(
        self, names: list[bytes], queue_refs: list[int], text: bytes, room: RefRoom, *, is_interned: bool = False
    ) -> None:
        self.names = names
        self._put_refs(queue_refs, room)
        self.count = len(queue_refs)
        self.text = text
        self.is_interned = is_interned
        self.written_at = -1  # physical offset of this set's newest record, or -1
        self.again_at = -1  # physical offset from which on it is written again
        self.counted_in = 0  # the generation of the caches in which it was counted last
        untracked.untrack(self)

    def _put_refs(self, refs: list[int], room: RefRoom) -> None:
        self.queue_refs = room.put(refs)


class Route:
    """Where messages of one topic go: the record's own topic and queue, common properties, and the dispatch set."""

    def __init__(self, topic: bytes, queue_id: int, topic_ref: int, prefix: bytes, dispatch: DispatchSet) -> None:
        self.topic = topic  # the record's topic, at most 255 bytes
        self.queue_id = queue_id  # the topic's queue, from 0
        self.topic_ref = topic_ref  # the store's number for (topic, queue_id)
        self.prefix = prefix  # encoded properties that each message of the route starts with
        self.dispatch = dispatch
        self.checked_at = 0  # the router's: the change of its filters up to which the route is known to be right
        untracked.untrack(self)

    def measure(self, generation: int) -> int:
        """Return about how many bytes it takes; its set, which others may share, counts once in a generation."""
        size = ROUTE_BYTES + len(self.topic) + len(self.prefix)
        dispatch = self.dispatch
        if dispatch.counted_in != generation:
            dispatch.counted_in = generation
            letters = sum(map(len, dispatch.names)) if dispatch.is_interned else len(dispatch.text)
            size += DISPATCH_BYTES + len(dispatch.text) + NAME_BYTES * dispatch.count + letters
        return size


class PublishBatch:
    """Messages on their way in.

    `topics` are the distinct topics as the codec cut them; `routes` stands parallel to it, filled by the front, None
    where the publisher may not. Positions are half-open: bodies lie in `buf`, each message's own encoded properties
    in `extra`. `tag` is the front's: a packet identifier, a sequence number. A born time of 0 means now.
    `waits` names messages that are to come to further places later, each with a route into the timer: the broker
    stores a copy there for each of them.

    The append fills `physical_offset` and `queue_offset` (the topic queue's); -1 for a message without a route. An
    engine that `places_late` fills them with `tell_places`.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.count = 0
        self.appended = 0  # messages that the append got through, `count` unless it raised
        self.ticket = 0  # the engine's ticket for the messages it took: asks whether they are stored
        self.is_whole = False  # the append takes all messages of the batch or, with an error, none
        self.retained_count = 0  # messages with FLAG_RETAIN, counted by the codec that fills the batch
        self.buf: bytes | bytearray | memoryview = _NOTHING
        self.extra: bytes | bytearray | memoryview = _NOTHING
        self.origin = b""  # encoded properties of the publisher, the same for the whole batch
        self.born_host = b"\x7f\x00\x00\x01\x00\x00\x00\x00"  # address (4 or 16 bytes) and port (4 bytes)
        self.topics: list[bytes] = []
        self.routes: list[Route | None] = []
        self.waits: list[tuple[int, Route]] = []
        self.route_index = _ints(capacity)
        self.body_start = _ints(capacity)
        self.body_end = _ints(capacity)
        self.extra_start = _ints(capacity)
        self.extra_end = _ints(capacity)
        self.flag = _ints(capacity)
        self.sys_flag = _ints(capacity)
        self.reconsume_times = _ints(capacity)
        self.born_ms = _longs(capacity)
        self.tag = _longs(capacity)
        self.physical_offset = _longs(capacity)
        self.queue_offset = _longs(capacity)

    def find_step(self) -> int:
        """Return how many of the first messages make one step of work: at least one, mostly all.

        Routes are filled in. A message costs by the queues that it goes to, and a retained one besides.
        """
        widest = 0
        for route in self.routes:
            if route is not None and route.dispatch.count > widest:
                widest = route.dispatch.count
        if self.retained_count == 0 and widest * self.count <= _STEP_DISPATCHES:
            return self.count
        left = _STEP_DISPATCHES
        for i in range(self.count):
            route = self.routes[self.route_index[i]]
            left -= _RETAINED_DISPATCHES if self.flag[i] & _FLAG_RETAIN else 0
            left -= route.dispatch.count if route is not None else 0
            if left < 0 and i > 0:
                return i
        return self.count

    def clear(self) -> None:
        """Forget all messages and let go of the buffers."""
        self.count = 0
        self.appended = 0
        self.is_whole = False
        self.retained_count = 0
        self.buf = _NOTHING
        self.extra = _NOTHING
        self.topics.clear()
        self.routes.clear()
        self.waits.clear()


class StoredBatch:
    """Messages on their way out: columns of positions into `buf`, one mapped segment, read only.

    `topic` positions give the publisher's topic (property LMQ_TOPIC), or the record's own topic where there is none.
    `queue_offset` is the number in the queue that was read. `attempt` counts from 1. Valid until the next read into
    the same batch; a caller that keeps bytes copies them.

    Light queues share records: a reader of the next queue into the same batch often wants the very rows that are
    there. The first `sound_rows` rows are what their physical offsets say in the log of reader `reader_number`, also
    after `clear`. As long as `fill_number` is the same, and not 0, so are the messages, but for their queue offsets.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.count = 0
        self.next_offset = 0  # where the next read of the queue goes on, also past records that were damaged
        self.reader_number = 0
        self.sound_rows = 0
        self.fill_number = 0
        self.buf: bytes | bytearray | memoryview = _NOTHING
        self.record_start = _ints(capacity)
        self.record_end = _ints(capacity)
        self.topic_start = _ints(capacity)
        self.topic_end = _ints(capacity)
        self.body_start = _ints(capacity)
        self.body_end = _ints(capacity)
        self.properties_start = _ints(capacity)
        self.properties_end = _ints(capacity)
        self.flag = _ints(capacity)
        self.sys_flag = _ints(capacity)
        self.attempt = _ints(capacity)
        self.queue_offset = _longs(capacity)
        self.physical_offset = _longs(capacity)
        self.born_ms = _longs(capacity)
        self.store_ms = _longs(capacity)

    def clear(self) -> None:
        """Forget all messages and let go of the buffer."""
        self.count = 0
        self.buf = _NOTHING


class KeySearch:
    """Which messages of a queue may have a key, as a word of KEYS or as UNIQ_KEY: a question, and its answer.

    It is made once and asked again and again: `Engine.find_keyed` answers. Then `offsets` has, ascending, the first
    `count` of those that may have the key, and no other message between `bound` and where the search began has it.
    """

    def __init__(self) -> None:
        self.queue_ref = -1
        self.first = 0
        self.end = 0
        self.key = b""
        self.is_back = False
        self.bound = 0
        self.count = 0
        self.offsets = _longs(KEYED_MAX)

    def ask(self, queue_ref: int, first: int, end: int, key: bytes, *, is_back: bool) -> None:
        """Ask about the messages [first, end).

        Args:
            queue_ref: The queue.
            first: Offset to begin at.
            end: Offset to end at, after `first`.
            key: The key, not empty.
            is_back: Whether to begin at the end.
        """
        self.queue_ref = queue_ref
        self.first = first
        self.end = end
        self.key = key
        self.is_back = is_back
        self.count = 0

    def found(self, offset: int) -> None:
        """Note an offset whose message may have the key."""
        self.offsets[self.count] = offset
        self.count += 1
