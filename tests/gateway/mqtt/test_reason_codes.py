from __future__ import annotations

from gateway.mqtt.reason_codes import SUBSCRIBE_FAILURE, ConnectCode


def test_codes_are_those_of_mqtt_3_1_1():  # tables 3.1 and 3.9.3
    assert [code.value for code in ConnectCode] == [0, 1, 2, 3, 4, 5]
    assert SUBSCRIBE_FAILURE == 0x80
