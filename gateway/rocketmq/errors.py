"""What can go wrong with a peer's requests, and the response code of each of the core's errors."""

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
from lmq.remoting.commands import Command, answer
from lmq.remoting.errors import RemotingError
from lmq.remoting.response_codes import ResponseCode


class CommandRefusedError(RemotingError):
    """A request that is answered with `code` and `remark`; the connection goes on."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark


class PeerSilentError(RemotingError):
    """A peer that is given up because nothing came of it in time; the text is for the log."""


RESPONSE_CODE_BY_ERROR: dict[type[LmqError], ResponseCode] = {
    LmqError: ResponseCode.SYSTEM_ERROR,
    StoreError: ResponseCode.SERVICE_NOT_AVAILABLE,
    DataFolderInUseError: ResponseCode.SERVICE_NOT_AVAILABLE,
    DataFolderUnusableError: ResponseCode.SERVICE_NOT_AVAILABLE,
    DiskFullError: ResponseCode.SYSTEM_BUSY,
    FlushFailedError: ResponseCode.SERVICE_NOT_AVAILABLE,
    StoreClosedError: ResponseCode.SERVICE_NOT_AVAILABLE,
    CorruptRecordError: ResponseCode.SYSTEM_ERROR,
    MessageTooLargeError: ResponseCode.MESSAGE_ILLEGAL,
    InvalidNameError: ResponseCode.INVALID_PARAMETER,
    QueueError: ResponseCode.SYSTEM_ERROR,
    QueueNotFoundError: ResponseCode.TOPIC_NOT_EXIST,
    QueueLimitError: ResponseCode.SYSTEM_BUSY,
    OffsetOutOfRangeError: ResponseCode.PULL_OFFSET_MOVED,
    ReceiptError: ResponseCode.SYSTEM_ERROR,
}


def response_code_of(error: LmqError) -> ResponseCode:
    """Return the response code of one of the core's errors, by its nearest class in the table."""
    for kind in type(error).__mro__:
        if kind in RESPONSE_CODE_BY_ERROR:
            return RESPONSE_CODE_BY_ERROR[kind]
    return ResponseCode.SYSTEM_ERROR


def refusal_of(request: Command, error: CommandRefusedError | LmqError) -> Command:
    """Return the answer to a request that was refused."""
    if isinstance(error, CommandRefusedError):
        return answer(request, error.code, error.remark)
    return answer(request, response_code_of(error), str(error))
