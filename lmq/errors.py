"""What can go wrong for a user of the SDK."""

from __future__ import annotations

from lmq.remoting.response_codes import ResponseCode


class SdkError(Exception):
    """Anything that the SDK reports."""


class ConnectFailedError(SdkError):
    """No connection could be made in time."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason


class ConnectionLostError(SdkError):
    """The connection ended before the answer came: the request may have been carried out, or not."""

    def __init__(self, address: str) -> None:
        super().__init__(f"lost the connection to {address}")
        self.address = address


class RequestTimeoutError(SdkError):
    """No answer in time: the request may have been carried out, or not."""

    def __init__(self, address: str, timeout_s: float) -> None:
        super().__init__(f"{address} did not answer within {timeout_s:g} s")
        self.address = address
        self.timeout_s = timeout_s


class ClosedError(SdkError):
    """The producer or consumer was not started, or was stopped."""

    def __init__(self) -> None:
        super().__init__("not started, or stopped already")


class ResponseError(SdkError):
    """The broker refused: its response code and remark."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(f"refused with code {code}: {remark}")
        self.code = code
        self.remark = remark


class NotFoundError(ResponseError):
    """There is no such topic, message or offset."""


class MessageRefusedError(ResponseError):
    """The message, its properties or its topic's name are not allowed."""


class NoPermissionError(ResponseError):
    """This client may not do that."""


class BusyError(ResponseError):
    """The broker takes no more at present; try again later."""


class UnsupportedError(ResponseError):
    """The broker does not know this kind of request."""


ERROR_BY_CODE: dict[int, type[ResponseError]] = {
    ResponseCode.SYSTEM_BUSY: BusyError,
    ResponseCode.SERVICE_NOT_AVAILABLE: BusyError,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: UnsupportedError,
    ResponseCode.MESSAGE_ILLEGAL: MessageRefusedError,
    ResponseCode.INVALID_PARAMETER: MessageRefusedError,
    ResponseCode.NO_PERMISSION: NoPermissionError,
    ResponseCode.TOPIC_NOT_EXIST: NotFoundError,
    ResponseCode.QUERY_NOT_FOUND: NotFoundError,
}


def response_error(code: int, remark: str | None) -> ResponseError:
    """Return the error of a response code."""
    return ERROR_BY_CODE.get(code, ResponseError)(code, remark or "")
