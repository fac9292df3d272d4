from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.listen_settings import ListenSettings, TlsSettings, find_address, find_listens
from gateway.settings import MqttSettings


def test_one_address_is_text_and_off_is_none():
    assert find_listens("127.0.0.1:1883") == [ListenSettings(address="127.0.0.1:1883")]
    assert find_listens("off") == []
    assert find_address("off") is None
    assert find_address("[::1]:1") == ("::1", 1)


def test_a_list_has_addresses_as_text_and_as_tables():
    listed = ["127.0.0.1:1883", {"address": "0.0.0.0:8883", "tls": {"certificate": "a.pem"}}]
    plain, secure = find_listens(MqttSettings(listen=listed).listen)
    assert plain == ListenSettings(address="127.0.0.1:1883")
    assert secure.tls == TlsSettings(certificate=Path("a.pem"))
    assert find_listens(MqttSettings(listen=[]).listen) == ()


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        ("here", "must be HOST:PORT"),
        ("::1:1883", "an IPv6 host needs brackets"),
        (["off"], "an empty list closes the door"),
        ([{"address": "127.0.0.1:1", "tls": {}}], "Field required"),
        (
            [{"address": "127.0.0.1:1", "tls": {"certificate": "a", "client_certificate": "maybe"}}],
            "required.*optional",
        ),
    ],
)
def test_what_is_no_address_is_refused(listen, said):
    with pytest.raises(ValidationError, match=said):
        MqttSettings(listen=listen)


def test_addresses_are_told_in_one_line():
    tls = TlsSettings(certificate=Path("a.pem"), key=Path("b.pem"))
    assert str(ListenSettings(address="h:1")) == "h:1"
    assert str(ListenSettings(address="h:1", tls=tls)) == "h:1 (tls certificate=a.pem key=b.pem)"
