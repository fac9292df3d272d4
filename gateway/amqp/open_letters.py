"""Dead letters finish their messages by being stored: at the start the log is asked which they are.

A letter names its message in the record, so it is stored and its message finished by one write. That its message is
done is noted besides, soon after, in what keeps places; a process that was killed before, or a power cut that took the
note, leaves it to the letter.

Source: docs/decisions/0081-a-letter-finishes-its-message.md.
"""

from __future__ import annotations

from functools import partial

from core.broker import Broker
from core.message import StoredBatch
from core.octets import read_bytes
from core.properties import LETTER_OF, decode_properties

NAME = "amqp_letters"  # of the place, and of the table that says that there is one
_ROW = b"places"
_SLOT = 0
READ_BYTES = 4 << 20  # so much of the log is read at the start though it has no letters: some hundredths of a second


class OpenLetters:
    """Up to where the messages of all letters in the log are known to be done, durably."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._places = broker.places(NAME)
        table = broker.table(NAME)
        if table.get(_ROW) is None:
            self._places.reserve(())
            self._places.acquire(broker.sure_place)
            table.put(_ROW, b"")
        else:
            self._places.reserve((_SLOT,))
        found = self._places.find(_SLOT)
        self._settled = found or 0
        self._keep(min(broker.sure_place if found is None else found, broker.end_place))
        self._open: dict[int, int] = {}  # of letters whose messages are not done: where they begin
        self._begun = 0
        self._begun_before = 0  # `_settled`: those until then are done
        self._is_asking = False

    def recover(self) -> int:
        """Finish the messages of letters that the log has, before any of their queues is opened; return how many."""
        found = self._broker.replay_from(self._settled, self._finish)
        self._broker.pop.write()
        return found

    def _finish(self, batch: StoredBatch) -> int:
        found = 0
        for i in range(batch.count):
            encoded = read_bytes(batch.buf, batch.properties_start[i], batch.properties_end[i])
            named = identify_message(encoded) if LETTER_OF in encoded else None
            found += named is not None and self._broker.pop.finish(*named)
        return found

    def begin(self) -> int:
        """Note that letters are about to be stored; return what `end` is to be told when their messages are done.

        It is above 0.
        """
        self._begun += 1
        self._open[self._begun] = self._broker.end_place
        return self._begun

    def end(self, number: int) -> None:
        """Note that the messages of letters are done, or given again; 0: of none."""
        self._open.pop(number, None)

    def settle(self) -> None:
        """Have it noted how far all are done, once that is durable; called now and then.

        It is never noted sooner: a power cut may keep a number and lose what was written before it.
        """
        settled = next(iter(self._open.values()), self._broker.end_place)
        has_letters = self._begun > self._begun_before and settled > self._settled
        is_far = self._broker.bytes_since(self._settled) - self._broker.bytes_since(settled) >= READ_BYTES
        if (has_letters or is_far) and not self._is_asking and self._broker.pop.is_written:
            self._is_asking = True
            begun = self._begun_before if self._open else self._begun
            self._broker.when_durable(partial(self._on_durable, settled, begun))

    def _on_durable(self, settled: int, begun: int, error: Exception | None) -> None:
        self._is_asking = False
        if error is None:
            self._begun_before = begun
            self._keep(settled)

    def _keep(self, settled: int) -> None:
        if settled != self._settled:
            self._settled = settled
            self._places.fill(_SLOT, settled)


def encode_message(place: int, identity: tuple[int, int]) -> bytes:
    """Return what a letter says of its message: where it is in the log, and what the pop queues know it by."""
    return b"%d.%d.%d" % (place, *identity)


def identify_message(encoded: bytes) -> tuple[int, int, int] | None:
    """Return what `PopService.finish` takes to finish what a record with these properties is a letter of, or None."""
    parts = decode_properties(encoded).get(LETTER_OF, b"").split(b".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):  # noqa: PLR2004  # as it is encoded
        return None
    return int(parts[1]), int(parts[2]), int(parts[0])
