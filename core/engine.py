"""What the broker, its sessions and its queues know of storage: an engine keeps messages, definitions and places.

The embedded engine is this process's own store (`core/store/embedded.py`). Everything that the broker asks of storage
is asked here, so that another engine can stand in its place.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from core.errors import LmqError
from core.message import KeySearch, PublishBatch, Route, StoredBatch
from core.record_journal import RecordJournal
from core.room import Room
from core.row_format import FIRST, RowFormat

Outcome: TypeAlias = "Callable[[LmqError | None], None]"  # told None where it went well
Found = Callable[[int], None]  # told an offset, or -1 where the engine cannot tell it now
FoundRecord: TypeAlias = "Callable[[bytes | None], None]"  # told a record, or None where none is served
FoundDispatch = Callable[[list[tuple[bytes, int]]], None]  # told light queues, each with an offset in it
Holder = Callable[[], Iterable[tuple[int, int]]]  # pairs of a queue and the first offset that is still needed


class Table(Protocol):
    """A durable map, all of it in memory; changes are kept as `Engine.when_kept` says."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""

    def delete(self, key: bytes) -> None:
        """Remove `key`, where it is there."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give all keys and values; the table must not change meanwhile."""

    def list_keys(self) -> list[bytes]:
        """Return all keys, for walks in which the table changes: pairs would be objects made in one step."""

    def __len__(self) -> int:
        """Return how many keys there are."""

    def __contains__(self, key: object) -> bool:
        """Return whether there is a value of `key`."""


class Places(Protocol):
    """Numbers in slots, which change per message and outlive a killed process."""

    def reserve(self, slots_in_use: Iterable[int]) -> None:
        """Say which slots have owners."""

    def acquire(self, value: int = 0) -> int:
        """Return a free slot, with a number in it."""

    def release(self, slot: int) -> None:
        """Give a slot back."""

    def get(self, slot: int) -> int:
        """Return the number in a slot."""

    def find(self, slot: int) -> int | None:
        """Return the number in a slot, or None, once, where it is lost; it is 0 then."""

    def set(self, slot: int, value: int) -> None:
        """Put a number into a slot."""

    def fill(self, slot: int, value: int) -> None:
        """Put a number into a slot, whatever was there."""


class EngineFigures(NamedTuple):
    """What an engine tells operators of itself."""

    messages_stored: int  # since the start, once each
    dispatches: int  # entries that they made in light queues
    queues: int
    log_bytes: int
    log_bytes_punched: int  # given back in the middle of the log, where nobody needed them
    records_damaged: int
    damage_beside: dict[str, int]  # by kind of file


def _nothing() -> None:
    return


class Engine:
    """Keeps messages in queues, and what the product has to remember of its users. Abstract.

    Queues have numbers, given on first use, which are the engine's. Offsets count a queue's messages from 0. The broker
    sets `request_turn`, which an engine calls when something came that `step` is to work on. Where a message lies
    besides is a place, a number that means something to the engine only.

    Args:
        room: Whether there is room for what publishers bring.
        message_bytes_max: The longest body that is taken.
    """

    def __init__(self, room: Room, message_bytes_max: int) -> None:
        self.room = room
        self.message_bytes_max = message_bytes_max
        self.request_turn: Callable[[], None] = _nothing

    # Queues

    def intern_queue(self, key: bytes) -> int:
        """Return the number of a queue, made on first use: a light queue by its name, a topic's as `topic/0`."""
        raise NotImplementedError

    def find_queue(self, key: bytes) -> int:
        """Return the number of a queue, or -1."""
        raise NotImplementedError

    def queue_key(self, queue_ref: int) -> bytes:
        """Return the key that `queue_ref` stands for."""
        raise NotImplementedError

    def queue_lines(self, first: int, end: int, prefix: bytes) -> bytes:
        """Return the keys of the numbers from `first` to before `end` without their prefix, a line break before each.

        Nothing where one of them is not there, has another prefix or a line break.
        """
        raise NotImplementedError

    def queue_count(self) -> int:
        """Return how many queues there are; their numbers go up from 0."""
        raise NotImplementedError

    def open_queue(self, queue_ref: int, then: Outcome) -> None:
        """Call back when the ends of a queue are known and followed from then on, at once or later, or with an error.

        What is open stays open, and is so at once when it is asked for again.
        """
        raise NotImplementedError

    def min_offset(self, queue_ref: int) -> int:
        """Return the first offset that is kept, as far as it is known; `max_offset` where none is."""
        raise NotImplementedError

    def max_offset(self, queue_ref: int) -> int:
        """Return the next offset to be given, as far as it is known: of a queue that is not open, 0 or an older one.

        It never goes back.
        """
        raise NotImplementedError

    def next_offsets(self, start: int, out: array[int]) -> int:
        """Fill `out` with what `max_offset` says of the queues from `start` on; return how many there were."""
        raise NotImplementedError

    def first_offsets(self, start: int, out: array[int]) -> int:
        """Fill `out` with what `min_offset` says of the queues from `start` on; return how many there were."""
        raise NotImplementedError

    def make_route(self, topic: bytes, queue_id: int, prefix: bytes, names: Sequence[bytes]) -> Route:
        """Return the route of messages to queue `queue_id` of `topic` and to the light queues `names`.

        `prefix` holds encoded properties that the messages of the route begin with.

        Raises:
            InvalidNameError: A name is no light queue's, or the topic is the engine's own.
        """
        raise NotImplementedError

    # Write

    @property
    def store_host(self) -> bytes:
        """Address and port that records are stamped with, and message ids carry: 4 or 16 bytes, then 4."""
        raise NotImplementedError

    @property
    def named_address(self) -> tuple[str | None, int | None]:
        """The host and port to stamp records with, as far as the engine's own settings name them."""
        raise NotImplementedError

    def set_store_host(self, store_host: bytes) -> None:
        """Stamp records from now on with this address and port."""
        raise NotImplementedError

    def append_batch(self, batch: PublishBatch, now_ms: int) -> None:
        """Append every message of `batch` that has a route, in order; `batch.ticket` is set, also with an error.

        Raises:
            DiskFullError, MessageTooLargeError: `batch.appended` messages got through, the rest did not. None did of a
                batch that `is_whole`.
            StoreClosedError: Nothing is taken any more.
        """
        raise NotImplementedError

    def keep_together(self, on: bool) -> None:  # noqa: FBT001  # a switch
        """Have what is appended until it is switched off, in the same turn, be there after a crash whole or not at all.

        Where an append fails, what it got through belongs to it.
        """
        raise NotImplementedError

    @property
    def places_late(self) -> bool:
        """Whether an append leaves the offsets of its batch unknown, and they are asked for with `tell_places`."""
        raise NotImplementedError

    def tell_places(self, ticket: int, batch: PublishBatch) -> None:
        """Fill `physical_offset` and `queue_offset` of the messages that stand for `ticket`, those of no other.

        It is asked from within the outcome of the ticket, where that is no error. `batch` has the first or all of them.
        """
        raise NotImplementedError

    # Read

    def read(self, queue_ref: int, offset: int, into: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Fill `into` with messages of one queue from `offset` on; return how many.

        At least one where any is left, even if larger than `bytes_max`; 0 means that nothing is left.
        `into.next_offset` is where to go on: after the last message, or after all offsets that were given so far where
        nothing is left.

        `AWAY`: there are some and they are on their way. `into` is empty, `next_offset` is `offset`; the queue is given
        by `take_grown` when they are here, and `request_turn` is called. Readers that are not parked on it ask again.
        """
        raise NotImplementedError

    def read_offsets(self, queue_ref: int, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Fill `into` with the first `count` of `offsets`, ascending.

        Returns:
            How many of `offsets` are dealt with, at least one; those that are damaged or gone give no message. `AWAY`,
            as of `read`, where none can be yet.
        """
        raise NotImplementedError

    def find_keyed(self, search: KeySearch) -> bool:
        """Answer which messages of a queue may have a key, without a read.

        Returns:
            Whether it is known; False where the messages at that side of the stretch have to be read.
        """
        raise NotImplementedError

    def find_record(self, place: int, then: FoundRecord) -> None:
        """Tell `then` the record at a place: what messages that are read bear as `physical_offset`.

        `then` may be called at once, and is called in no order with others.
        """
        raise NotImplementedError

    def find_dispatch(self, record: bytes, then: FoundDispatch) -> None:
        """Tell `then` the light queues of a record that was copied, each with the message's offset in it.

        An offset is -1 where only the queue tells it: there it is the message that has the record's place. As
        `find_record`, `then` may be called at once.
        """
        raise NotImplementedError

    def copy_record(self, batch: PublishBatch, i: int) -> bytes | None:
        """Return the record of message `i` of the batch that was appended last; None where it is damaged already."""
        raise NotImplementedError

    def read_record(self, record: bytes, into: StoredBatch) -> bool:
        """Fill `into` with a record that was copied; False where it is none."""
        raise NotImplementedError

    def record_version(self, record: bytes) -> int:
        """Return the version of a retained message: its own, and above that of each that was stored before it."""
        raise NotImplementedError

    @property
    def next_version(self) -> int:
        """A number above the versions of all retained messages so far, and above that of none to come."""
        raise NotImplementedError

    def find_version(self, version: int, then: FoundRecord) -> None:
        """Tell `then` the record of a retained message, also of one that was replaced; as `find_record`."""
        raise NotImplementedError

    def find_offset(self, queue_ref: int, at_ms: int, then: Found, *, upper: bool = False) -> None:
        """Tell `then` the first offset stored at `at_ms` or later, `max_offset` where there is none.

        With `upper`: the last offset stored at `at_ms` or before, `min_offset` where there is none. `then` may be
        called at once, and is called in no order with others.
        """
        raise NotImplementedError

    @property
    def end_place(self) -> int:
        """The place of the next message. It never goes back while the engine runs."""
        raise NotImplementedError

    @property
    def sure_place(self) -> int:
        """The place before which all is there that was stored; a power cut may have taken some of what follows."""
        raise NotImplementedError

    @property
    def waits_for_disk(self) -> bool:
        """Whether `when_stored` and `when_durable` call back only for what a power cut leaves."""
        raise NotImplementedError

    def bytes_since(self, place: int) -> int:
        """Return about how many bytes were stored since the message at a place."""
        raise NotImplementedError

    def replay_from(self, place: int, take_in: Callable[[StoredBatch], int]) -> int:
        """Give `take_in` all messages since `end_place` was `place`; return the sum of what it returns."""
        raise NotImplementedError

    def replay_uncovered(self, take_in: Callable[[StoredBatch], int]) -> int:
        """Give `take_in` what the log has and no table may have learned of; return the sum of what it returns."""
        raise NotImplementedError

    # Wake

    def watch(self, queue_ref: int, on: bool) -> None:  # noqa: FBT001  # a switch
        """Report the growth of a queue in `take_grown`, or no longer."""
        raise NotImplementedError

    def take_grown(self, into: list[int]) -> int:
        """Append the watched queues that grew since the last call to `into`, each once; return how many."""
        raise NotImplementedError

    def step(self, now_ms: int) -> bool:
        """Do what is due at the end of a turn; return whether the next turn is not to be long in coming."""
        raise NotImplementedError

    # Durability

    @property
    def is_failed(self) -> bool:
        """Whether nothing can be promised any more."""
        raise NotImplementedError

    def when_stored(self, ticket: int, then: Outcome) -> None:
        """Call back when the messages of a ticket are as safe as the settings say, or with the error that befell them.

        Each ticket has an outcome of its own. Those of one publisher, which is what batches of one `origin` have, come
        in the order of the calls, also where one is met at once.
        """
        raise NotImplementedError

    def when_durable(self, then: Outcome) -> None:
        """Call back when all messages and acknowledgements so far are as safe as the settings say.

        In the order of the calls and after the outcomes of all tickets so far, with an error where nothing can be
        promised any more. `when_stored` leaves the
        acknowledgements of consumers for later: what nobody is answered for is delivered again after a power cut.
        """
        raise NotImplementedError

    def when_kept(self, then: Outcome) -> None:
        """Call back when all changes of tables so far are kept, and all messages so far stored; as `when_durable`.

        Retained messages follow from the log: nobody need wait for their table.
        """
        raise NotImplementedError

    # What is remembered besides

    def claim(self, key: bytes, then: Outcome) -> None:
        """Call back when a session or shared queue is this gateway's alone, or with the error that keeps it another's.

        What is claimed already is granted again.
        """
        raise NotImplementedError

    def release(self, key: bytes) -> None:
        """Let another gateway claim it, once all changes of tables so far are kept; also one not told of yet."""
        raise NotImplementedError

    def table(self, name: str, rows: RowFormat = FIRST) -> Table:
        """Return the durable table `name`, its rows in the version of `rows`, also those kept in older ones."""
        raise NotImplementedError

    def check_room(self, row_bytes: int = 0) -> None:
        """Check that what is changed in a table now is likely to be kept soon; see `when_kept`.

        `row_bytes`: the keys and values of what is put, where they are many.

        Raises:
            DiskFullError: There is no room: the change would not be kept, and not be answered, until there is.
        """
        raise NotImplementedError

    def check_commits(self) -> None:
        """Check that a change of a table that needs no room to speak of, such as a deletion, is likely to be kept soon.

        Raises:
            DiskFullError: Changes wait for room: this one would wait behind them.
        """
        raise NotImplementedError

    def places(self, name: str) -> Places:
        """Return the places `name`, made on first use."""
        raise NotImplementedError

    def journal(self, name: str) -> RecordJournal:
        """Return the journal `name`, made on first use."""
        raise NotImplementedError

    # Retention

    def hold(self, positions: Holder) -> None:
        """Keep what `positions` names from retention: pairs of a queue and the first offset that is still needed."""
        raise NotImplementedError

    def retire(self, now_ms: int) -> int:
        """Let go of what is past its time and held by nobody; return how many segments went since the last call.

        Takes about 1 ms; `step` goes on with the rest.
        """
        raise NotImplementedError

    def figures(self) -> EngineFigures:
        """Return what operators are told."""
        raise NotImplementedError
