"""One channel: content that is being put together, publisher confirms, delivery tags."""

from __future__ import annotations

import struct
from collections import deque
from typing import Any

from gateway.amqp.codec import PUBLISH, PublishCutter
from gateway.amqp.errors import AmqpError, frame_error, undecodable
from gateway.amqp.frames import FRAME_HEADER
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.unacked import UnackedRing

HEADER = struct.Struct(">HHQ")
BASIC = 60
IMMEDIATE = 2
SIZE_MAX = 536_870_912  # RabbitMQ's own limit, whatever the settings say: what is larger costs the connection
NO_HEADER = f"expected content header for class {BASIC}, got non content header frame instead"
NO_BODY = "expected content body, got non content body frame instead"


class Content:
    """A publish whose frames come one by one."""

    __slots__ = ("bits", "block", "body", "body_size", "raw")

    def __init__(self, raw: bytes, bits: int) -> None:
        self.raw = raw  # exchange and routing key, two short strings
        self.bits = bits
        self.block: bytes | None = None  # None until the content header is there
        self.body = bytearray()
        self.body_size = 0

    def interrupted(self) -> AmqpError:
        """Return the answer to a method that comes before the content is complete."""
        return _unexpected(NO_HEADER if self.block is None else NO_BODY)


class Incomplete:
    """How many bytes a connection has of messages that further frames belong to, on all its channels together."""

    __slots__ = ("bytes_max", "size")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.size = 0

    def add(self, size: int) -> None:
        """Take note that `size` bytes came.

        Raises:
            AmqpError: RESOURCE_ERROR: that is too much.
        """
        self.size += size
        if self.size > self.bytes_max:
            reason = f"messages that are not complete have more than {self.bytes_max} bytes together"
            raise AmqpError(ReplyCode.RESOURCE_ERROR, reason, PUBLISH)


class Channel:
    """The protocol's side of a channel. `slots`, `consumers`, `starved` and `transaction` are the handler's."""

    __slots__ = (
        "ack_marks",
        "again",
        "again_frame",
        "confirmed",
        "consumers",
        "content",
        "free_slots",
        "get_slot",
        "incomplete",
        "is_closing",
        "is_confirming",
        "last_queue",
        "number",
        "prefetch_count",
        "prefetch_global",
        "published",
        "reply_name",
        "slots",
        "starved",
        "transaction",
        "unacked",
    )

    def __init__(self, number: int, incomplete: Incomplete) -> None:
        self.number = number
        self.incomplete = incomplete  # the connection's
        self.is_closing = False  # we sent channel.close: everything but the answer is ignored
        self.content: Content | None = None
        self.is_confirming = False
        self.reply_name = ""  # the queue of its direct replies, if it consumes them
        self.transaction: Any = None  # where publishes wait for their commit, after tx.select
        self.published = 0  # number of the last publish, counted with confirms on
        self.confirmed = 0  # all up to this number were answered
        self.unacked = UnackedRing()
        self.ack_marks: list[tuple[int, int]] | None = None  # moments, and the first tag that was not given by then
        self.again: Any = None  # the event of the last frame that clients send again and again, and that frame
        self.again_frame = b""
        self.prefetch_count = 0  # of consumers to come; 0 for no limit
        self.prefetch_global = 0  # of all consumers together
        self.last_queue = ""  # what an empty queue name stands for
        self.slots: list[Any] = []
        self.free_slots: deque[int] = deque()
        self.get_slot = -1  # that of the last basic.get, -1 for none
        self.starved: dict[str, Any] = {}  # consumers that were passed over for want of room, by tag
        self.consumers: dict[str, Any] = {}

    def count_published(self, count: int) -> int:
        """Number `count` publishes; return the first number, 0 without confirms."""
        if not self.is_confirming:
            return 0
        first = self.published + 1
        self.published += count
        return first

    def start_content(self, payload: bytes) -> None:
        """Take a `basic.publish` whose content comes in further frames.

        Raises:
            AmqpError: FRAME_ERROR: not readable; NOT_IMPLEMENTED: it wants to be delivered at once.
        """
        raw_end = _short_end(payload, _short_end(payload, 6))
        if raw_end + 1 != len(payload):
            raise undecodable(payload[4:], PUBLISH)
        bits = payload[raw_end]
        if bits & IMMEDIATE:
            raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "immediate=true", PUBLISH)
        self.content = Content(payload[6:raw_end], bits & 1)

    def take_part(self, kind: int, payload: bytes, body_max: int) -> bool:
        """Take a content header, or else a body; return whether the content is complete.

        Raises:
            AmqpError: As `take_header` and `take_body`.
        """
        return self.take_header(payload, body_max) if kind == FRAME_HEADER else self.take_body(payload)

    def take_header(self, payload: bytes, body_max: int) -> bool:
        """Take a content header; return whether the content is complete.

        Raises:
            AmqpError: UNEXPECTED_FRAME: none was due; FRAME_ERROR: it is none; PRECONDITION_FAILED: the body is too
                large.
        """
        content = self.content
        if content is None:
            raise unexpected_content()
        if content.block is not None:
            raise _unexpected(NO_BODY)
        if len(payload) < HEADER.size:
            raise frame_error(FRAME_HEADER, payload)
        class_id, weight, size = HEADER.unpack_from(payload)
        if weight:
            raise _unexpected(NO_HEADER)
        if class_id != BASIC:
            raise _unexpected(f"expected content header for class {BASIC}, got one for class {class_id} instead")
        if size > SIZE_MAX:
            reason = f"content body size {size} exceeds maximum allowed size {SIZE_MAX}"
            raise AmqpError(ReplyCode.FRAME_ERROR, reason, PUBLISH)
        if size > body_max:
            configured = "configured " if body_max != SIZE_MAX else ""
            reason = f"message size {size} is larger than {configured}max size {body_max}"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason, PUBLISH)
        content.block = payload[HEADER.size :]
        content.body_size = size
        return bool(size == 0)

    def take_body(self, payload: bytes) -> bool:
        """Take a content body frame; return whether the content is complete.

        Raises:
            AmqpError: UNEXPECTED_FRAME: none was due; FRAME_ERROR: more than the header said; RESOURCE_ERROR: the
                connection has too much that is not complete.
        """
        content = self.content
        if content is None:
            raise unexpected_content()
        if content.block is None:
            raise _unexpected(NO_HEADER)
        if len(content.body) + len(payload) > content.body_size:
            raise AmqpError(ReplyCode.FRAME_ERROR, "content body frame exceeds remaining content size", PUBLISH)
        self.incomplete.add(len(payload))
        content.body += payload
        return len(content.body) == content.body_size

    def drop_content(self) -> None:
        """Forget what is not complete, if anything."""
        if self.content is not None:
            self.incomplete.size -= len(self.content.body)
            self.content = None

    def finish_content(self, cutter: PublishCutter, user: bytes) -> None:
        """Make the complete content the batch of `cutter`.

        Raises:
            AmqpError: Its properties are malformed or too large, or say what may not be.
        """
        content = self.content
        assert content is not None
        assert content.block is not None
        self.drop_content()
        try:
            cutter.add(content.raw, content.bits, content.block, content.body, user, self.reply_name)
        except AmqpError as error:
            error.method_index = PUBLISH
            raise


def _short_end(payload: bytes, pos: int) -> int:
    return pos + 1 + payload[pos] if pos < len(payload) else len(payload)


def check_channel_count(count: int, channel_max: int) -> None:
    """Check that a connection may have one more channel than `count`.

    Raises:
        AmqpError: NOT_ALLOWED.
    """
    if count >= channel_max:
        reason = f"number of channels opened ({count}) has reached the negotiated channel_max ({channel_max})"
        raise AmqpError(ReplyCode.NOT_ALLOWED, reason)


def unbounded() -> None:
    """Let a user have as many channels as its connections may have."""


def unexpected_content() -> AmqpError:
    """Return the answer to content that no publish precedes."""
    return AmqpError(ReplyCode.UNEXPECTED_FRAME, "expected method frame, got non method frame instead")


def _unexpected(reason: str) -> AmqpError:
    return AmqpError(ReplyCode.UNEXPECTED_FRAME, reason, PUBLISH)
