"""What a peer can do wrong on an MQTT connection; each costs it the connection, and no other client anything."""

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
from gateway.mqtt.reason_codes import ReasonCode


class MqttError(Exception):
    """The connection ends for what the peer sent.

    `kind` is a short reason in lower case for the log and the counters, `clause` the statement of the standard that was
    broken, such as `MQTT-2.2.2-2`, `code` what a client of MQTT 5 is told.
    """

    kind = "mqtt"
    code = ReasonCode.UNSPECIFIED_ERROR

    def __init__(self, clause: str, reason: str, code: ReasonCode | None = None) -> None:
        super().__init__(f"{reason} [{clause}]")
        self.clause = clause
        self.reason = reason
        if code is not None:
            self.code = code


class MalformedPacketError(MqttError):
    """Bytes that are no packet of this protocol."""

    kind = "malformed_packet"
    code = ReasonCode.MALFORMED_PACKET


class ProtocolViolationError(MqttError):
    """A sound packet that may not come here, or not now."""

    kind = "protocol_violation"
    code = ReasonCode.PROTOCOL_ERROR


class PacketTooLargeError(MqttError):
    """A packet that says it is larger than the settings allow."""

    kind = "packet_too_large"
    code = ReasonCode.PACKET_TOO_LARGE


class TopicAliasError(MqttError):
    """A topic alias that was not agreed on, or stands for nothing."""

    kind = "topic_alias_invalid"
    code = ReasonCode.TOPIC_ALIAS_INVALID


class ReceiveMaximumError(MqttError):
    """More messages at QoS 1 and 2 at once than the gateway said that it takes."""

    kind = "receive_maximum_exceeded"
    code = ReasonCode.RECEIVE_MAXIMUM_EXCEEDED


class ConnectTimeoutError(MqttError):
    """No CONNECT within the time for it."""

    kind = "connect_timeout"


class KeepAliveTimeoutError(MqttError):
    """Nothing was heard for one and a half times the keep-alive."""

    kind = "keep_alive_timeout"
    code = ReasonCode.KEEP_ALIVE_TIMEOUT


REASON_CODE_BY_ERROR: dict[type[LmqError], ReasonCode] = {
    StoreError: ReasonCode.IMPLEMENTATION_ERROR,
    DataFolderInUseError: ReasonCode.SERVER_UNAVAILABLE,
    DataFolderUnusableError: ReasonCode.SERVER_UNAVAILABLE,
    DiskFullError: ReasonCode.QUOTA_EXCEEDED,
    FlushFailedError: ReasonCode.SERVER_UNAVAILABLE,
    StoreClosedError: ReasonCode.SERVER_UNAVAILABLE,
    CorruptRecordError: ReasonCode.IMPLEMENTATION_ERROR,
    MessageTooLargeError: ReasonCode.PACKET_TOO_LARGE,
    InvalidNameError: ReasonCode.TOPIC_NAME_INVALID,
    QueueError: ReasonCode.UNSPECIFIED_ERROR,
    QueueNotFoundError: ReasonCode.UNSPECIFIED_ERROR,
    QueueLimitError: ReasonCode.QUOTA_EXCEEDED,
    OffsetOutOfRangeError: ReasonCode.UNSPECIFIED_ERROR,
    ReceiptError: ReasonCode.UNSPECIFIED_ERROR,
}


def reason_code(error: LmqError) -> ReasonCode:
    """Return why a connection is closed on which the core raised `error`."""
    return REASON_CODE_BY_ERROR.get(type(error), ReasonCode.UNSPECIFIED_ERROR)
