"""What a peer did wrong, with the reply that it gets; and how errors of the core are answered."""

from __future__ import annotations

from core.errors import (
    CorruptRecordError,
    DataFolderInUseError,
    DataFolderUnusableError,
    DiskFullError,
    FlushFailedError,
    InvalidNameError,
    LmqError,
    MessageTooLargeError,
    OffsetOutOfRangeError,
    QueueError,
    QueueLimitError,
    QueueNotFoundError,
    ReceiptError,
    StoreClosedError,
    StoreError,
)
from gateway.amqp.reply_codes import SOFT, ReplyCode

REPLY_TEXT_BYTES_MAX = 255  # a short string
CUT = "..."  # at the end of a text that is longer
SNIPPET_BYTES = 16  # of a frame, in texts; chosen: a reply text has 255 bytes, and each takes two to four
PRINTED = range(0x20, 0x7F)  # octets of a frame that are written as text, if all are such
OCTETS_MAX = 128  # written one by one: more would not fit into a text


class AmqpError(Exception):
    """A violation by the peer, answered by `channel.close` or `connection.close`.

    Args:
        code: The reply code.
        reason: The text after the code's name, as RabbitMQ words it.
        method_index: Class and method (16 bits each) that the error is about, 0 for none.
        is_fatal: Whether the whole connection ends; by default that is in the code.
        denied: What the user may not do, for the log; empty where it is no matter of rights.
        by: The rule or limit that says so; empty where there is none.
    """

    def __init__(
        self,
        code: ReplyCode,
        reason: str,
        method_index: int = 0,
        *,
        is_fatal: bool | None = None,
        denied: str = "",
        by: str = "",
    ) -> None:
        super().__init__(f"{code.name} - {reason}")
        self.code = code
        self.reason = reason
        self.method_index = method_index
        self.denied = denied
        self.by = by
        self.is_fatal = code not in SOFT if is_fatal is None else is_fatal

    @property
    def reply_text(self) -> str:
        """The text for the wire, cut to what a short string holds."""
        text = str(self).encode()
        if len(text) <= REPLY_TEXT_BYTES_MAX:
            return str(self)
        return text[: REPLY_TEXT_BYTES_MAX - len(CUT)].decode("utf-8", "ignore") + CUT

    def close_arguments(self) -> tuple[int, str, int, int]:
        """Return what a close says: reply code and text, class and method."""
        return self.code, self.reply_text, self.method_index >> 16, self.method_index & 0xFFFF


class PeerSilentError(Exception):
    """A peer that is given up because nothing came of it in time; the text is for the log."""


REPLY_CODE_BY_ERROR: dict[type[LmqError], ReplyCode] = {
    LmqError: ReplyCode.INTERNAL_ERROR,
    StoreError: ReplyCode.INTERNAL_ERROR,
    DataFolderInUseError: ReplyCode.INTERNAL_ERROR,
    DataFolderUnusableError: ReplyCode.INTERNAL_ERROR,
    CorruptRecordError: ReplyCode.INTERNAL_ERROR,
    FlushFailedError: ReplyCode.INTERNAL_ERROR,
    StoreClosedError: ReplyCode.INTERNAL_ERROR,
    DiskFullError: ReplyCode.RESOURCE_ERROR,
    MessageTooLargeError: ReplyCode.PRECONDITION_FAILED,
    InvalidNameError: ReplyCode.PRECONDITION_FAILED,
    QueueError: ReplyCode.PRECONDITION_FAILED,
    QueueNotFoundError: ReplyCode.NOT_FOUND,
    QueueLimitError: ReplyCode.PRECONDITION_FAILED,
    OffsetOutOfRangeError: ReplyCode.PRECONDITION_FAILED,
    ReceiptError: ReplyCode.PRECONDITION_FAILED,
}


def error_from_core(error: LmqError, method_index: int = 0) -> AmqpError:
    """Return the answer to an error that the core raised for this peer."""
    code = REPLY_CODE_BY_ERROR.get(type(error), ReplyCode.INTERNAL_ERROR)
    return AmqpError(code, str(error), method_index)


def not_of_streams(feature: str, what: str) -> AmqpError:
    """Return the answer to a wish that queues of the type stream do not meet; `what` says which queue."""
    return AmqpError(ReplyCode.NOT_IMPLEMENTED, f"{feature} not supported by stream queues {what}")


def octets_text(octets: bytes) -> str:
    """Return octets as RabbitMQ writes them: `<<1,2,3>>`."""
    shown = ",".join(map(str, octets[:OCTETS_MAX]))
    return f"<<{shown}>>" if len(octets) <= OCTETS_MAX else f"<<{shown},{CUT}>>"


def _describe_frame(kind: int, payload: bytes) -> str:
    what = "all" if len(payload) <= SNIPPET_BYTES else f"first {SNIPPET_BYTES}"
    snippet = payload[:SNIPPET_BYTES]
    shown = octets_text(snippet)
    if snippet and all(letter in PRINTED for letter in snippet):
        text = snippet.decode().replace("\\", "\\\\").replace('"', '\\"')
        shown = f'<<"{text}">>'
    return f"type {kind}, {what} octets = {shown}"


def frame_error(kind: int, payload: bytes, why: str = "unknown_frame") -> AmqpError:
    """Return the answer to a frame that cannot be one; `payload` is as much of it as is there."""
    return AmqpError(ReplyCode.FRAME_ERROR, f"{_describe_frame(kind, payload)}: {why}")


def unexpected_frame(kind: int, payload: bytes) -> AmqpError:
    """Return the answer to a frame that has no place where it came."""
    return AmqpError(ReplyCode.UNEXPECTED_FRAME, _describe_frame(kind, payload))


def undecodable(arguments: bytes, method_index: int) -> AmqpError:
    """Return the answer to a method whose arguments are not what they must be."""
    return AmqpError(ReplyCode.FRAME_ERROR, f"cannot decode {octets_text(arguments)}", method_index)


def unimplemented(method_index: int) -> AmqpError:
    """Return the answer to a method that no client may send, or that is not there."""
    return AmqpError(ReplyCode.COMMAND_INVALID, "unimplemented method", method_index)


def bad_text() -> AmqpError:
    """Return the answer to a short string that is no UTF-8."""
    return AmqpError(ReplyCode.FRAME_ERROR, "Malformed UTF-8 in shortstr")


def syntax_error(reason: str, method_index: int = 0) -> AmqpError:
    """Return the answer to contents that cannot be read."""
    return AmqpError(ReplyCode.SYNTAX_ERROR, reason, method_index)


def locked_queue(name: str, vhost: str) -> AmqpError:
    """Return the error of a queue that another connection has to itself."""
    reason = (
        f"cannot obtain exclusive access to locked queue '{name}' in vhost '{vhost}'. It could be originally "
        "declared on another connection or the exclusive property value does not match that of the original "
        "declaration."
    )
    return AmqpError(ReplyCode.RESOURCE_LOCKED, reason)
