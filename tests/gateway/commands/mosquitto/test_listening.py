from __future__ import annotations

import pytest

from gateway.commands.mosquitto.lines import MosquittoFileError, split_lines
from gateway.commands.mosquitto.listening import Listener


def listener(first, *more):
    line, *others = split_lines("\n".join([f"listener {first}", *more]), "m.conf")
    made = Listener(line)
    for other in others:
        made.say(other)
    return made


@pytest.mark.parametrize(
    ("said", "address", "is_local"),
    [
        ("1883", "0.0.0.0:1883", False),
        ("1883 127.0.0.1", "127.0.0.1:1883", True),
        ("1883 fe80::1", "[fe80::1]:1883", False),
        ("0 /run/m.sock", "unix:/run/m.sock", True),
    ],
)
def test_listener_is_an_address(said, address, is_local):
    made = listener(said, "max_connections -1", "protocol mqtt")
    assert (made.address(), made.is_local, made.hints()) == (address, is_local, [])


def test_listener_with_tls_and_certificates_of_clients():
    files = ["certfile /s.pem", "keyfile /s.key", "cafile /ca.pem", "crlfile /crl.pem"]
    assert listener("8883", *files).address() == {
        "address": "0.0.0.0:8883",
        "tls": {"certificate": "/s.pem", "key": "/s.key"},
    }
    more = ["require_certificate true", "use_identity_as_username true", "tls_version tlsv1.3", "max_connections 5"]
    made = listener("8883", *files, *more)
    assert made.address() == {
        "address": "0.0.0.0:8883",
        "connections_max": 5,
        "tls": {
            "certificate": "/s.pem",
            "key": "/s.key",
            "client_ca": "/ca.pem",
            "crl": "/crl.pem",
            "user_from": "common_name",
            "version_min": "1.3",
        },
    }
    assert made.hints() == ["m.conf:1: each name in a certificate has to be a user: lmq user add NAME --generate"]


def test_listener_by_websocket():
    made = listener("9001", "protocol websockets")
    assert made.address() == {"address": "0.0.0.0:9001", "websocket": "*"}
    assert made.hints() == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["require_certificate true"], "needs a cafile"),
        (["cafile /ca.pem", "use_identity_as_username true"], "no client could log in"),
        (["cafile /ca.pem", "require_certificate maybe"], "must be true or false"),
    ],
)
def test_certificates_that_cannot_be_asked_for_as_there_are_refused(said, why):
    made = listener("8883", "certfile /s.pem", "keyfile /s.key", *said)
    with pytest.raises(MosquittoFileError, match=why):
        made.address()
