from __future__ import annotations

from gateway.auth.credentials import Credentials, Refusal
from gateway.mqtt.login import CODES, check_client_id, credentials_of
from gateway.mqtt.packets import OLD_LEVEL, Connect
from gateway.mqtt.reason_codes import ConnectCode


def connect(client_id=b"c", *, level=4, is_clean=True, user=None, password=None):
    return Connect(level, client_id, is_clean, 60, None, user, password)


def test_client_identifier_is_the_clients_own_or_ours():
    assert check_client_id(connect(b"abc"), 3) == (ConnectCode.ACCEPTED, b"abc")
    assert check_client_id(connect(b"abcd"), 3)[0] is ConnectCode.IDENTIFIER_REJECTED
    ours = {check_client_id(connect(b""), 3) for _ in range(2)}
    assert len(ours) == 2
    assert {code for code, _ in ours} == {ConnectCode.ACCEPTED}
    assert check_client_id(connect(b"", is_clean=False), 3)[0] is ConnectCode.IDENTIFIER_REJECTED
    assert check_client_id(connect(b"", level=OLD_LEVEL), 3)[0] is ConnectCode.IDENTIFIER_REJECTED


def test_client_identifier_is_the_one_in_the_certificate_or_none():
    assert check_client_id(connect(b"abc"), 10, "abc") == (ConnectCode.ACCEPTED, b"abc")
    assert check_client_id(connect(b"", level=5), 10, "abc") == (ConnectCode.ACCEPTED, b"abc")
    assert check_client_id(connect(b"abd"), 10, "abc")[0] is ConnectCode.IDENTIFIER_REJECTED
    assert check_client_id(connect(b"", is_clean=False), 10, "abc")[0] is ConnectCode.IDENTIFIER_REJECTED


def test_credentials_are_those_of_the_packet():
    assert credentials_of(connect(), b"", "h:1") == Credentials("mqtt", None, None, "h:1")
    assert credentials_of(connect(user="é".encode(), password=b"\xff"), b"", "h:1") == Credentials(
        "mqtt", "é", b"\xff", "h:1"
    )
    assert credentials_of(connect(user=b"bob"), b"c", "h:1", "ann").certified == "ann"


def test_every_refusal_has_its_return_code():
    assert set(CODES) == set(Refusal)
