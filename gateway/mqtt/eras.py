"""What a subscription was before: a SUBSCRIBE to a filter that a session has changes QoS and options from there on.

What became of a message is told by what the subscription was when the message was sent, so it keeps up to which offset
it was what. A change of what matters for that is rare; nothing is kept for a message.

Source: docs/storage-format.md, "Definitions".
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from gateway.mqtt.packets import NO_LOCAL, QOS_MASK

FORGOTTEN = 0x80  # in rules: what it was is not kept
ERAS_MAX = 8  # of one subscription, the latest
_ERA = struct.Struct(">qqB")


class Era(NamedTuple):
    """What a subscription was for the messages before an offset, down to where the era before ends."""

    until: int  # queue offset of the first message that it was sent otherwise
    missed_until: int  # at QoS 0: of those before this offset it may have missed some while its client was away
    rules: int  # QoS and NO_LOCAL as in SUBSCRIBE; or FORGOTTEN

    @property
    def qos(self) -> int:
        """The QoS that was granted."""
        return self.rules & QOS_MASK


Eras = tuple[Era, ...]


def add_era(eras: Eras, era: Era, rules: int) -> Eras:
    """Return what a subscription was once it has other rules, where that matters for what is told of messages.

    What is forgotten for that says so.
    """
    if bool(era.qos) == bool(rules & QOS_MASK) and not (era.rules ^ rules) & NO_LOCAL:
        return eras
    found = cut_eras(eras, era.until)
    if found and found[-1].until == era.until:
        return found  # it was sent nothing since the last change
    if len(found) == ERAS_MAX:
        found = (Era(found[1].until, 0, FORGOTTEN), *found[2:])
    return (*found, era)


def cut_eras(eras: Eras, position: int) -> Eras:
    """Return eras of a subscription that goes on from a position: what is there now is of the time from now on."""
    if not eras or eras[-1].until <= position:
        return eras
    before = [one for one in eras if one.until < position]
    return (*before, eras[len(before)]._replace(until=position))


def find_era(eras: Eras, offset: int) -> Era | None:
    """Return what a subscription was for the message at an offset, None where it is that still."""
    return next((one for one in eras if offset < one.until), None)


def pack_eras(eras: Eras) -> bytes:
    """Return eras as they are written down."""
    return b"".join(_ERA.pack(*one) for one in eras)


def parse_eras(packed: bytes) -> Eras:
    """Return what `pack_eras` wrote."""
    return tuple(Era(*one) for one in _ERA.iter_unpack(packed[: len(packed) // _ERA.size * _ERA.size]))
