from __future__ import annotations

import pytest

from gateway.door import Listen
from gateway.listen_settings import ListenSettings, TlsSettings
from gateway.listeners import Carriage, check_certificates, told_name
from gateway.net.streams.layer import StreamError
from gateway.net.streams.proxy_header import ProxyHeader
from gateway.net.streams.tls import TlsLayer
from gateway.net.streams.websocket import WebSocketLayer
from gateway.settings import AdminSettings, AmqpSettings, GatewaySettings, MqttSettings, RocketmqSettings, SettingsError
from tests.support.certificates import issue, server_files
from tests.support.gateway import ANY_PORT, make_settings, running_gateway


def tls(**changes):
    certificate, key = server_files()
    return TlsSettings(**{"certificate": certificate, "key": key, **changes})


def secure(address=ANY_PORT, **changes):
    return {"address": address, "tls": tls(**changes)}


@pytest.mark.parametrize(
    ("name", "told", "told_where_plain_is_taken"),
    [
        ("mqtt", "mqtts", "mqtt"),
        ("amqp", "amqps", "amqp"),
        ("broker", "broker-tls", "broker"),
        ("namesrv", "namesrv-tls", "namesrv"),
    ],
)
def test_addresses_that_take_tls_only_have_a_name_of_their_own(name, told, told_where_plain_is_taken):
    assert told_name(Listen(name, ANY_PORT)) == name
    assert told_name(Listen(name, ANY_PORT, tls())) == told
    assert told_name(Listen(name, ANY_PORT, tls(optional=True))) == told_where_plain_is_taken


@pytest.mark.asyncio
async def test_each_address_of_each_door_is_told_in_order(tmp_path):
    blocks = {
        "mqtt": MqttSettings(listen=[ANY_PORT, secure(), ANY_PORT]),
        "amqp": AmqpSettings(listen=[secure()]),
        "rocketmq": RocketmqSettings(namesrv="off", broker=[secure(), secure(optional=False)]),
    }
    async with running_gateway(tmp_path, **blocks) as gateway:
        lines = gateway.lines()
        assert [line.split()[1] for line in lines] == ["mqtt", "mqtts", "mqtt", "amqps", "broker", "broker-tls"]
        assert len({line.split()[2] for line in lines}) == len(lines)
        host, port = gateway.listening["mqtt"]
        assert lines[0] == f"listening mqtt {host}:{port}"


def test_certificates_that_cannot_be_used_are_named_with_their_address(tmp_path):
    for block in (
        {"mqtt": MqttSettings(listen=[secure("127.0.0.1:1", key=tmp_path / "none")])},
        {"amqp": AmqpSettings(listen=[secure("127.0.0.1:1", key=tmp_path / "none")])},
        {"rocketmq": RocketmqSettings(broker=[secure("127.0.0.1:1", key=tmp_path / "none")])},
        {"admin": AdminSettings(listen=[secure("127.0.0.1:1", key=tmp_path / "none")])},
        {"rocketmq": RocketmqSettings(namesrv=[secure("127.0.0.1:1", key=tmp_path / "none")])},
    ):
        with pytest.raises(SettingsError, match=r"tls of \w+ on 127\.0\.0\.1:1: cannot read .*/none: No such file"):
            check_certificates(GatewaySettings(**block))
    check_certificates(GatewaySettings(mqtt=MqttSettings(listen=[secure()])))


@pytest.mark.asyncio
async def test_a_gateway_with_a_certificate_that_cannot_be_used_does_not_start(tmp_path):
    (tmp_path / "empty.pem").touch()
    with pytest.raises(SettingsError, match="tls of mqtt on"):
        async with running_gateway(tmp_path, mqtt=MqttSettings(listen=[secure(certificate=tmp_path / "empty.pem")])):
            pass


@pytest.mark.asyncio
async def test_certificates_are_read_again_all_or_none(tmp_path):
    first, second = (issue(tmp_path / name) for name in ("first", "second"))
    blocks = {
        "mqtt": MqttSettings(listen=[secure(certificate=first[0], key=first[1])]),
        "amqp": AmqpSettings(listen=[secure(certificate=second[0], key=second[1])]),
    }
    async with running_gateway(tmp_path / "data", **blocks) as gateway:
        before = [carriage.context for carriage in gateway.listeners._carriages]
        second[1].write_text("nothing")
        with pytest.raises(SettingsError, match="tls of amqp on"):
            await gateway.reload(make_settings(tmp_path / "data", **blocks))
        assert [carriage.context for carriage in gateway.listeners._carriages] == before
        issue(tmp_path / "second")
        await gateway.reload(make_settings(tmp_path / "data", **blocks))
        after = [carriage.context for carriage in gateway.listeners._carriages]
        assert not ({*before} & {*after}) - {None}


def test_layers_are_made_for_each_connection():
    carriage = Carriage(Listen("mqtt", ANY_PORT, tls()))
    (first,), (second,) = carriage.make_layers("192.0.2.1"), carriage.make_layers("192.0.2.1")
    assert first is not second


@pytest.mark.asyncio
async def test_mqtt_over_websocket_has_names_of_its_own(tmp_path):
    listen = [{"address": ANY_PORT, "websocket": "/mqtt"}, {**secure(), "websocket": "/mqtt"}]
    async with running_gateway(tmp_path, mqtt=MqttSettings(listen=listen)) as gateway:
        assert [line.split()[1] for line in gateway.lines()][:2] == ["ws", "wss"]


@pytest.mark.asyncio
async def test_unix_sockets_are_told_by_their_path_and_are_gone_after_the_stop(tmp_path):
    path = tmp_path / "mqtt.sock"
    for _ in range(2):
        async with running_gateway(tmp_path / "data", mqtt=MqttSettings(listen=f"unix:{path}")) as gateway:
            assert gateway.lines()[0] == f"listening mqtt unix:{path}"
            assert path.is_socket()
        assert not path.exists()


def test_layers_stand_on_one_another_as_the_bytes_come():
    networks = ListenSettings(address="h:1", proxies=["10.0.0.0/8"]).proxies
    carriage = Carriage(Listen("mqtt", ANY_PORT, tls(), networks, "/mqtt"))
    kinds = [type(layer) for layer in carriage.make_layers("10.0.0.1")]
    assert kinds == [ProxyHeader, TlsLayer, WebSocketLayer]
    assert not carriage.is_plain
    assert Carriage(Listen("mqtt", ANY_PORT)).is_plain
    with pytest.raises(StreamError):
        carriage.make_layers("192.0.2.1")


@pytest.mark.asyncio
async def test_expiry_of_certificates_is_known_while_their_files_are_there(tmp_path):
    files = issue(tmp_path / "server")
    entry = secure(certificate=files[0], key=files[1])
    async with running_gateway(tmp_path / "data", mqtt=MqttSettings(listen=[ANY_PORT, entry])) as gateway:
        ((name, address, at_s),) = gateway.listeners.certificates()
        assert (name, address) == ("mqtts", ANY_PORT)
        assert at_s > 2_000_000_000
        files[0].unlink()
        assert list(gateway.listeners.certificates()) == []
