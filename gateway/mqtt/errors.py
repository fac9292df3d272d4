"""What a peer can do wrong on an MQTT connection; each costs it the connection and nobody else anything."""

from __future__ import annotations


class MqttError(Exception):
    """The connection ends for what the peer sent.

    `kind` is a short reason in lower case for the log and the counters, `clause` the statement of MQTT 3.1.1 that was
    broken, such as `MQTT-2.2.2-2`.
    """

    kind = "mqtt"

    def __init__(self, clause: str, reason: str) -> None:
        super().__init__(f"{reason} [{clause}]")
        self.clause = clause
        self.reason = reason


class MalformedPacketError(MqttError):
    """Bytes that are no packet of this protocol."""

    kind = "malformed_packet"


class ProtocolViolationError(MqttError):
    """A sound packet that may not come here, or not now."""

    kind = "protocol_violation"


class PacketTooLargeError(MqttError):
    """A packet that says it is larger than the settings allow."""

    kind = "packet_too_large"


class UnsupportedQosError(MqttError):
    """A message at QoS 2, which this door does not take."""

    kind = "unsupported_qos"


class ConnectTimeoutError(MqttError):
    """No CONNECT within the time for it."""

    kind = "connect_timeout"


class KeepAliveTimeoutError(MqttError):
    """Nothing was heard for one and a half times the keep-alive."""

    kind = "keep_alive_timeout"
