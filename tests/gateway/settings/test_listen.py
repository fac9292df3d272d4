from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.settings.listen import ListenSettings, MqttListenSettings, TlsSettings, find_address, find_listens
from gateway.settings.models import AdminSettings, AmqpSettings, MqttSettings, RocketmqSettings

OF_CLIENTS = {"certificate": "a", "client_ca": "b"}


def test_one_address_is_text_and_off_is_none():
    assert find_listens("127.0.0.1:1883") == [ListenSettings(address="127.0.0.1:1883")]
    assert find_listens("off") == []
    assert find_address("off") is None
    assert find_address("[::1]:1") == ("::1", 1)


def test_a_list_has_addresses_as_text_and_as_tables():
    listed = ["127.0.0.1:1883", {"address": "0.0.0.0:8883", "tls": {"certificate": "a.pem"}}]
    plain, secure = find_listens(MqttSettings(listen=listed).listen)
    assert (plain.address, plain.tls) == ("127.0.0.1:1883", None)
    assert secure.tls == TlsSettings(certificate=Path("a.pem"))
    assert find_listens(MqttSettings(listen=[]).listen) == ()


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        ("here", "must be HOST:PORT"),
        ("127.0.0.1:99999", "the port is at most 65535, and not 99999"),
        ("::1:1883", "an IPv6 host needs brackets"),
        ("unix:", "must name a path"),
        ([{"address": "h:1", "websocket": "mqtt"}], "begins with /"),
        ([{"address": "h:1", "proxies": ["somewhere"]}], "must be an address or a network, such as"),
        ([{"address": "h:1", "tls": {"certificate": "a", "name_is_user": True}}], "name_is_user needs client_ca"),
        ([{"address": "h:1", "tls": {"certificate": "a", "user_from": "dns"}}], "user_from needs client_ca"),
        ([{"address": "h:1", "tls": {"certificate": "a", "crl": "b"}}], "crl needs client_ca"),
        (
            [
                {
                    "address": "h:1",
                    "tls": {"certificate": "a", "client_ca": "b", "name_is_user": True, "user_from": "dns"},
                }
            ],
            "name_is_user means user_from = 'common_name'",
        ),
        ([{"address": "h:1", "client_id_from": "dns"}], "client_id_from needs tls with client_ca"),
        ([{"address": "h:1", "tls": {"certificate": "a", "version_min": "1.1"}}], "'1.2' or '1.3'"),
        (["off"], "an empty list closes the door"),
        ([{"address": "h:1", "mode": "0660"}], "mode is for the file of a Unix socket"),
        ([{"address": "unix:/a", "mode": "rw"}], "must be rights in octal"),
        ([{"address": "unix:/a", "mode": "0680"}], "must be rights in octal"),
        ([{"address": "unix:/a", "mode": "0466"}], "must let the gateway's own user read and write"),
        ([{"address": "unix:/a", "mode": "0777"}], "and nobody run it"),
        ([{"address": "unix:/a", "mode": "-660"}], "such as 0660 or 0600"),
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


def test_rates_of_messages_are_not_for_the_admin_door():
    with pytest.raises(ValidationError, match="total_messages_rate is not for the admin door"):
        AdminSettings(listen=[{"address": "127.0.0.1:1", "total_messages_rate": 5}])
    (entry,) = AdminSettings(listen=[{"address": "127.0.0.1:1", "connects_rate": 5, "connections_max": 2}]).listen
    assert (entry.connects_rate, entry.connections_max) == (5, 2)


def test_unix_sockets_are_for_doors_whose_clients_know_them():
    assert find_address("unix:/run/lmq.sock") == ("unix:/run/lmq.sock", 0)
    assert MqttSettings(listen="unix:/a").listen == "unix:/a"
    for refused in ({"namesrv": "unix:/a"}, {"broker": ["unix:/a"]}):
        with pytest.raises(ValidationError, match="a Unix socket is for MQTT and AMQP"):
            RocketmqSettings(**refused)
    with pytest.raises(ValidationError, match="a Unix socket is for MQTT and AMQP"):
        AdminSettings(listen="unix:/a")


def test_websockets_are_for_mqtt():
    assert MqttSettings(listen=[{"address": "h:1", "websocket": "/mqtt"}]).listen[0].websocket == "/mqtt"
    with pytest.raises(ValidationError, match="websocket"):
        AmqpSettings(listen=[{"address": "h:1", "websocket": "/mqtt"}])


def test_addresses_are_told_in_one_line():
    assert str(ListenSettings(address="unix:/a", mode="0660")) == "unix:/a (mode 0660)"
    tls = TlsSettings(certificate=Path("a.pem"), key=Path("b.pem"))
    assert str(ListenSettings(address="h:1")) == "h:1"
    assert str(ListenSettings(address="h:1", tls=tls)) == "h:1 (tls certificate=a.pem key=b.pem)"
    entry = MqttListenSettings(address="unix:/a", websocket="/mqtt", proxies=["10.0.0.0/8", "::1"])
    assert str(entry) == "unix:/a (proxies 10.0.0.0/8 ::1/128, websocket /mqtt)"
    assert str(MqttListenSettings(**entry.model_dump())) == str(entry)
