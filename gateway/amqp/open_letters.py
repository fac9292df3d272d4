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


class OpenLetters:
    """From where on the log may have letters of messages that are not known to be done, durably; 0: there are none."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._places = broker.places(NAME)
        table = broker.table(NAME)
        if table.get(_ROW) is None:
            self._places.reserve(())
            self._places.acquire()
            table.put(_ROW, b"")
        else:
            self._places.reserve((_SLOT,))
        self._since = self._places.get(_SLOT)
        self._open: dict[int, int] = {}  # of letters whose messages are not done: where they begin
        self._begun = 0
        self._is_asking = False

    def recover(self) -> int:
        """Finish the messages of letters that the log has, before any of their queues is opened; return how many."""
        sure = self._broker.sure_place
        found = self._broker.replay_from(min(self._since or sure, sure), self._finish)
        if found:
            self._broker.pop.write()
            self._keep(min(self._since or sure, sure))
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
        place = self._broker.end_place
        self._begun += 1
        self._open[self._begun] = place
        if not self._since:
            self._keep(place)
        return self._begun

    def end(self, number: int) -> None:
        """Note that the messages of letters are done, or given again; 0: of none."""
        self._open.pop(number, None)

    def settle(self) -> None:
        """Have it noted how far all are done, once that is durable; called now and then."""
        if self._since and not self._is_asking:
            self._is_asking = True
            settled = next(iter(self._open.values()), self._broker.end_place)
            self._broker.when_durable(partial(self._on_durable, settled, self._begun, not self._open))

    def _on_durable(self, settled: int, begun: int, is_all: bool, error: Exception | None) -> None:  # noqa: FBT001
        self._is_asking = False
        if error is None:
            self._keep(0 if is_all and begun == self._begun else settled)

    def _keep(self, since: int) -> None:
        self._since = since
        self._places.fill(_SLOT, since)


def encode_message(place: int, identity: tuple[int, int]) -> bytes:
    """Return what a letter says of its message: where it is in the log, and what the pop queues know it by."""
    return b"%d.%d.%d" % (place, *identity)


def identify_message(encoded: bytes) -> tuple[int, int] | None:
    """Return what the pop queues know the message by that a record with these properties is a letter of, or None."""
    parts = decode_properties(encoded).get(LETTER_OF, b"").split(b".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):  # noqa: PLR2004  # as it is encoded
        return None
    return int(parts[1]), int(parts[2])
