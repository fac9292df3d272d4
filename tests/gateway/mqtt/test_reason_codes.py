from __future__ import annotations

from gateway.mqtt.reason_codes import REASON_BY_CONNECT_CODE, SUBSCRIBE_FAILURE, ConnectCode, ReasonCode


def test_codes_are_those_of_mqtt_3_1_1():  # tables 3.1 and 3.9.3
    assert [code.value for code in ConnectCode] == [0, 1, 2, 3, 4, 5]
    assert SUBSCRIBE_FAILURE == 0x80


def test_reasons_are_those_of_mqtt_5():  # table 2-6
    numbers = [code.value for code in ReasonCode]
    assert numbers == [0, 1, 2, 4, 0x10, 0x11, 0x18, 0x19, *range(0x80, 0xA3)]
    assert set(REASON_BY_CONNECT_CODE) == set(ConnectCode)
