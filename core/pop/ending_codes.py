"""How a message ended without an acknowledgement, in the eight bytes that a journal's record of it has free.

The highest byte but one is the reason, the six lowest are the moment in ms. 0: the message was acknowledged. Without a
reason the six lowest are the code of the consumer that acknowledged it (`core/pop/acknowledgers.py`).

Source: docs/storage-format.md, "Pop journal".
"""

from __future__ import annotations

from typing import NamedTuple

OTHER = "ended otherwise"
LETTER = "dead letter"
REASONS = (
    "",
    OTHER,
    LETTER,
    "rejected",
    "expired",
    "maxlen",
    "delivery_limit",
    "purged",
    "acknowledged or purged",
    "sent",
    "handed_over",
    "too_large_for_subscriber",
    "queue_full",
    "slow_subscriber",
    "not_permitted",
    "passed_over",
    "began_behind",
    "began_unknown",
    "session_ended",
)  # on disk: only append
GIVEN_AGAIN = 124 << 48  # of no ending: what was said of these messages before counts for those at QoS 0 alone
GROUPS_MARK = 125 << 48  # of no message: as MARK, for groups of subscribers
LOST = 126 << 48  # of no message: what ended before an offset is not kept
MARK = 127 << 48  # of no message: this pop queue and those after it tell of all their messages how they ended
_MOMENT_MAX = (1 << 48) - 1  # the 48 bits below the reason: they last until the year 10889
_NUMBERS = {reason: number for number, reason in enumerate(REASONS)}


class Told(NamedTuple):
    """What a code says."""

    reason: str
    at_ms: int


def code_of(reason: str, at_ms: int) -> int:
    """Return the code of an ending; reasons that have no number are told as `OTHER`."""
    number = _NUMBERS.get(reason, _NUMBERS[OTHER])
    return number << 48 | max(0, min(at_ms, _MOMENT_MAX))


def told_by(code: int) -> Told:
    """Return what a code says; a reason of a later version is `OTHER`."""
    number = code >> 48
    return Told(REASONS[number] if number < len(REASONS) else OTHER, code & _MOMENT_MAX)
