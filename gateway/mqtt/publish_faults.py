"""What can be wrong with a PUBLISH packet, by the numbers that the codec has for it."""

from __future__ import annotations

from typing import NoReturn

from gateway.mqtt.errors import (
    MalformedPacketError,
    MqttError,
    PacketTooLargeError,
    ProtocolViolationError,
    TopicAliasError,
)

FAULTS: tuple[tuple[type[MqttError], str, str], ...] = (
    (MqttError, "", ""),
    (MalformedPacketError, "MQTT-3.3.1-4", "a PUBLISH has QoS 3"),
    (MalformedPacketError, "MQTT-3.3.1-2", "a PUBLISH at QoS 0 is marked as sent again"),
    (MalformedPacketError, "MQTT-4.8.0-1", "a PUBLISH ends before its topic or packet identifier does"),
    (MalformedPacketError, "MQTT-4.7.3-1", "a PUBLISH has an empty topic"),
    (MalformedPacketError, "MQTT-2.3.1-1", "a packet identifier is 0"),
    (MalformedPacketError, "MQTT-2.2.2-2", "properties of a PUBLISH are cut off, or may not stand there"),
    (ProtocolViolationError, "MQTT-2.2.2-2", "a property of a PUBLISH is there twice, or has a value that may not be"),
    (TopicAliasError, "MQTT-3.3.2-8", "the topic alias 0"),
    (PacketTooLargeError, "MQTT-2.2.2-2", "the properties of a PUBLISH are too large"),
    (ProtocolViolationError, "MQTT-3.3.2-8", "a PUBLISH has neither a topic nor an alias that stands for one"),
    (TopicAliasError, "MQTT-3.3.2-9", "a topic alias over the topic alias maximum"),
)


def raise_fault(fault: int) -> NoReturn:
    """Raise the error of a fault."""
    error, clause, reason = FAULTS[fault]
    raise error(clause, reason)
