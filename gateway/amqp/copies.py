"""The headers `CC` and `BCC`: more routing keys that a message goes to, as RabbitMQ takes them.

Only what comes with such a header passes here; the blocks have been checked before.
"""

from __future__ import annotations

from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import TYPE_NAMES, skip_value
from gateway.amqp.reply_codes import ReplyCode

CC = b"CC"
BCC = b"BCC"  # is taken out: receivers of the message do not see the others
_ARRAY = 0x41
_LONG_TEXT = 0x53


def take_copies(block: bytes, start: int, end: int) -> tuple[tuple[bytes, ...], bytes]:
    """Return the routing keys that the headers in [start, end) of a property block add, and the block without `BCC`.

    Items that are no text are passed over; of equal names the first counts.

    Raises:
        AmqpError: PRECONDITION_FAILED: one of the two is no array.
    """
    spans = _find(block, start, end)
    keys: list[bytes] = []
    for name in (CC, BCC):
        if name in spans:
            keys += _texts(block, name, spans[name])
    if BCC in spans:
        first, after = spans[BCC]
        first -= len(BCC) + 1
        size = (end - start - (after - first)).to_bytes(4, "big")
        block = block[: start - 4] + size + block[start:first] + block[after:]
    return tuple(keys), block


def _find(block: bytes, start: int, end: int) -> dict[bytes, tuple[int, int]]:
    """Return where the values of the two headers lie, type octet first."""
    spans: dict[bytes, tuple[int, int]] = {}
    pos = start
    while pos < end:
        value = pos + 1 + block[pos]
        name = block[pos + 1 : value]
        pos = skip_value(block, value)
        if name in {CC, BCC}:
            spans.setdefault(name, (value, pos))
    return spans


def _texts(block: bytes, name: bytes, span: tuple[int, int]) -> list[bytes]:
    pos, end = span
    if block[pos] != _ARRAY:
        reason = f'{{unacceptable_type_in_header,"{name.decode()}",{TYPE_NAMES[block[pos]]}}}'
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid message: {reason}")
    found: list[bytes] = []
    pos += 5
    while pos < end:
        after = skip_value(block, pos)
        if block[pos] == _LONG_TEXT:
            found.append(block[pos + 5 : after])
        pos = after
    return found
