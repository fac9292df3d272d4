from __future__ import annotations

from gateway.mqtt.answers import encode_auth, encode_connack, encode_disconnect, encode_suback, encode_unsuback
from gateway.mqtt.properties import Property
from gateway.mqtt.reason_codes import SUBSCRIBE_FAILURE, ConnectCode, ReasonCode
from tests.support import mqtt


def test_answers_have_the_bytes_of_version_3_1_1():
    assert encode_connack(ConnectCode.ACCEPTED, session_present=True) == b"\x20\x02\x01\x00"
    assert encode_connack(ConnectCode.NOT_AUTHORIZED, session_present=False) == b"\x20\x02\x00\x05"
    assert encode_suback(258, [0, 1, SUBSCRIBE_FAILURE]) == b"\x90\x05\x01\x02\x00\x01\x80"
    assert encode_suback(1, [0] * 200) == mqtt.suback(1, *[0] * 200)
    assert encode_unsuback(258, [0]) == b"\xb0\x02\x01\x02"


def test_answers_of_version_5_have_properties_and_codes():
    connack = encode_connack(0, session_present=True, level=5, properties=[(Property.RECEIVE_MAX, 10)])
    assert connack == b"\x20\x06\x01\x00\x03\x21\x00\x0a"
    assert encode_connack(0x87, session_present=False, level=5) == b"\x20\x03\x00\x87\x00"
    assert encode_suback(258, [2, 0x87], 5) == b"\x90\x05\x01\x02\x00\x02\x87"
    assert encode_unsuback(258, [0, 0x11], 5) == b"\xb0\x05\x01\x02\x00\x00\x11"
    assert encode_disconnect(ReasonCode.SESSION_TAKEN_OVER) == b"\xe0\x02\x8e\x00"
    assert encode_disconnect(0x81, [(Property.REASON, b"no")]) == b"\xe0\x07\x81\x05\x1f\x00\x02no"
    assert encode_auth(0x18, [(Property.AUTH_METHOD, b"M")]) == b"\xf0\x06\x18\x04\x15\x00\x01M"
