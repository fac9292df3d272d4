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
    QueueNotFoundError,
    ReceiptError,
    StoreClosedError,
    StoreError,
)
from gateway.amqp.reply_codes import SOFT, ReplyCode

REPLY_TEXT_BYTES_MAX = 255  # a short string


class AmqpError(Exception):
    """A violation by the peer, answered by `channel.close` or `connection.close`.

    Args:
        code: The reply code.
        reason: The text after the code's name, as RabbitMQ words it.
        method_index: Class and method (16 bits each) that the error is about, 0 for none.
        is_fatal: Whether the whole connection ends; by default that is in the code.
        denied: What the user may not do, for the log; empty where it is no matter of rights.
    """

    def __init__(
        self, code: ReplyCode, reason: str, method_index: int = 0, *, is_fatal: bool | None = None, denied: str = ""
    ) -> None:
        super().__init__(f"{code.name} - {reason}")
        self.code = code
        self.reason = reason
        self.method_index = method_index
        self.denied = denied
        self.is_fatal = code not in SOFT if is_fatal is None else is_fatal

    @property
    def reply_text(self) -> str:
        """The text for the wire, cut to what a short string holds."""
        text = str(self).encode()[:REPLY_TEXT_BYTES_MAX]
        return text.decode("utf-8", "ignore")


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
    OffsetOutOfRangeError: ReplyCode.PRECONDITION_FAILED,
    ReceiptError: ReplyCode.PRECONDITION_FAILED,
}


def error_from_core(error: LmqError, method_index: int = 0) -> AmqpError:
    """Return the answer to an error that the core raised for this peer."""
    code = REPLY_CODE_BY_ERROR.get(type(error), ReplyCode.INTERNAL_ERROR)
    return AmqpError(code, str(error), method_index)


def frame_error(reason: str) -> AmqpError:
    """Return the answer to a frame that cannot be one."""
    return AmqpError(ReplyCode.FRAME_ERROR, reason)


def syntax_error(reason: str, method_index: int = 0) -> AmqpError:
    """Return the answer to a frame whose payload cannot be read."""
    return AmqpError(ReplyCode.SYNTAX_ERROR, reason, method_index)
