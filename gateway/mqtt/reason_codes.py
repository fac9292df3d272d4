"""Numbers that MQTT answers with."""

from __future__ import annotations

from enum import IntEnum


class ConnectCode(IntEnum):
    """What a CONNACK says."""

    ACCEPTED = 0
    UNACCEPTABLE_PROTOCOL = 1
    IDENTIFIER_REJECTED = 2
    SERVER_UNAVAILABLE = 3
    BAD_CREDENTIALS = 4
    NOT_AUTHORIZED = 5


class ReasonCode(IntEnum):
    """Why a connection is closed, in the numbers of MQTT 5; MQTT 3.1.1 has no packet for them, the log has."""

    UNSPECIFIED_ERROR = 0x80
    IMPLEMENTATION_ERROR = 0x83
    SERVER_UNAVAILABLE = 0x88
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_TOO_LARGE = 0x95
    QUOTA_EXCEEDED = 0x97


SUBSCRIBE_FAILURE = 0x80  # in place of a granted QoS in a SUBACK
