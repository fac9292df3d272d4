from __future__ import annotations

from gateway.mqtt import errors
from gateway.mqtt.errors import MalformedPacketError, MqttError


def test_error_says_what_and_which_clause():
    error = MalformedPacketError("MQTT-2.2.2-2", "bad flags")
    assert (error.clause, error.reason, str(error)) == ("MQTT-2.2.2-2", "bad flags", "bad flags [MQTT-2.2.2-2]")


def test_every_kind_has_its_own_name():
    kinds = [cls.kind for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, MqttError)]
    assert len(kinds) == len(set(kinds)) >= 6
