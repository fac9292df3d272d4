"""What the properties of a send mean to us, by their names: stored as they are, left out, or something asked for.

Source: docs/protocols/rocketmq.md, "Sends".
"""

from __future__ import annotations

from core import octets
from core.properties import CORRELATION, ESCAPED_CONTENT_TYPE, PAIR, PAYLOAD_FORMAT, RESPONSE_TOPIC, TTL_MS

PLAIN = 0
DROP = 1
IS_DISPATCH = 2
IS_UNIQ = 3
IS_SPACE_TOPIC = 4
IS_DELAY = 5
IS_TIMER = 6
IS_TRAN = 7
IS_GROUP = 8
IS_REQUEST = 9
_PLAIN = PLAIN
_DROP = DROP
_IS_DISPATCH = IS_DISPATCH
_IS_UNIQ = IS_UNIQ
_IS_SPACE_TOPIC = IS_SPACE_TOPIC
_IS_DELAY = IS_DELAY
_IS_TIMER = IS_TIMER
_IS_TRAN = IS_TRAN
_IS_GROUP = IS_GROUP
_IS_REQUEST = IS_REQUEST

# names of properties, compared in place: where each begins in the text
_NAMES = (
    b"WAITPOP_CKINNER_MULTI_DISPATCHINNER_MULTI_QUEUE_OFFSET__CRC32#UNIQ_KEYLMQ_TOPICDELAYTIMER_DETRAN_MSG"
    b"REAL_TOPICREAL_QIDPGROUPREPLY_TO_CLIENT"
)
_WAIT_AT = 0
_POP_CK_AT = 4
_DISPATCH_AT = 10
_OFFSETS_AT = 30
_CRC_AT = 54
_UNIQ_AT = 62
_LMQ_TOPIC_AT = 70
_DELAY_AT = 79
_TIMER_AT = 84
_TRAN_AT = 92
_REAL_TOPIC_AT = 100
_REAL_QID_AT = 110
_GROUP_AT = 118
_REPLY_TO_AT = 124
# The envelope's fields that a producer may say as it is told them: docs/protocols/crossing.md.
_SAID_NAMES = frozenset((CORRELATION, ESCAPED_CONTENT_TYPE, PAIR, PAYLOAD_FORMAT, RESPONSE_TOPIC, TTL_MS))


def kind_of(text: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return what the property of the name [pos, end) means to us."""
    size = end - pos
    first = text[pos]
    if first == 0x55:
        return _IS_UNIQ if _is_name(text, pos, size, _UNIQ_AT, 8) else _PLAIN
    if first == 0x4C:
        if _is_name(text, pos, size, _LMQ_TOPIC_AT, 9):
            return _IS_SPACE_TOPIC
        is_own = size >= 4 and _is_name(text, pos, 4, _LMQ_TOPIC_AT, 4)
        return _DROP if is_own and octets.read_bytes(text, pos, pos + size) not in _SAID_NAMES else _PLAIN
    if first == 0x49 and _is_name(text, pos, size, _DISPATCH_AT, 20):
        return _IS_DISPATCH
    if first in {0x44, 0x50, 0x54}:
        return _kind_of_later(text, pos, size)
    return _kind_of_ours(text, pos, size) if first in {0x49, 0x52, 0x57, 0x5F} else _PLAIN


def _kind_of_later(text: bytes | bytearray | memoryview, pos: int, size: int) -> int:
    """Return what a name that begins with D, P or T means: a message for later, or a half one and its group."""
    if _is_name(text, pos, size, _DELAY_AT, 5):
        return _IS_DELAY
    if size >= 8 and _is_name(text, pos, 8, _TIMER_AT, 8):
        return _IS_TIMER
    if _is_name(text, pos, size, _TRAN_AT, 8):
        return _IS_TRAN
    if _is_name(text, pos, size, _GROUP_AT, 6):
        return _IS_GROUP
    return _DROP if _is_name(text, pos, size, _POP_CK_AT, 6) else _PLAIN


def _kind_of_ours(text: bytes | bytearray | memoryview, pos: int, size: int) -> int:
    """Return what a name means that we may write ourselves, or read: of a request, which wants a reply."""
    if _is_name(text, pos, size, _REPLY_TO_AT, 15):
        return _IS_REQUEST
    return _DROP if _is_ours(text, pos, size) else _PLAIN


def _is_ours(text: bytes | bytearray | memoryview, pos: int, size: int) -> bool:
    """Return whether only the broker writes a property of this name, or it is an order to the broker alone."""
    return (
        _is_name(text, pos, size, _WAIT_AT, 4)
        or _is_name(text, pos, size, _OFFSETS_AT, 24)
        or _is_name(text, pos, size, _CRC_AT, 8)
        or _is_name(text, pos, size, _REAL_TOPIC_AT, 10)
        or _is_name(text, pos, size, _REAL_QID_AT, 8)
    )


def _is_name(text: bytes | bytearray | memoryview, pos: int, size: int, name_at: int, name_size: int) -> bool:
    return size == name_size and octets.equal_bytes(text, pos, _NAMES, name_at, size)
