"""Numbers that MQTT 3.1.1 answers with."""

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


SUBSCRIBE_FAILURE = 0x80  # in place of a granted QoS in a SUBACK
