from __future__ import annotations

import contextlib
import ssl

import pytest
from cryptography import x509

from gateway.carriage import Carriage, told_name
from gateway.door import Listen
from gateway.net.streams.layer import Peer, StreamError
from gateway.net.streams.proxy_header import ProxyHeader
from gateway.net.streams.tls import TlsLayer
from gateway.net.streams.websocket import WebSocketLayer
from gateway.settings.listen import ListenSettings
from gateway.settings.models import SettingsError
from tests.support.certificates import authority_file, client_context, client_files, issue, revoke
from tests.support.gateway import ANY_PORT
from tests.support.listening import tls
from tests.support.tls import Client, shake_hands


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


def test_layers_are_made_for_each_connection():
    carriage = Carriage(Listen("mqtt", ANY_PORT, tls()))
    (first,), (second,) = carriage.make_layers("192.0.2.1"), carriage.make_layers("192.0.2.1")
    assert first is not second


@pytest.mark.parametrize(("websocket", "is_served"), [("/mqtt", False), ("*", True)])
def test_a_star_is_any_path_of_a_websocket(websocket, is_served):
    (layer,) = Carriage(Listen("mqtt", ANY_PORT, websocket=websocket)).make_layers("192.0.2.1")
    asked = b"GET /other HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    asked += b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    asked += b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
    with contextlib.suppress(StreamError):
        layer.receive_data(asked)
    assert layer.is_open == is_served


def test_layers_stand_on_one_another_as_the_bytes_come():
    networks = ListenSettings(address="h:1", proxies=["10.0.0.0/8"]).proxies
    carriage = Carriage(Listen("mqtt", ANY_PORT, tls(), networks, "/mqtt"))
    kinds = [type(layer) for layer in carriage.make_layers("10.0.0.1")]
    assert kinds == [ProxyHeader, TlsLayer, WebSocketLayer]
    assert not carriage.is_plain
    assert Carriage(Listen("mqtt", ANY_PORT)).is_plain
    with pytest.raises(StreamError):
        carriage.make_layers("192.0.2.1")


def protocol_of(listen, offered):
    """Return the protocol that a client agreed to that offers some."""
    context = client_context()
    context.set_alpn_protocols(offered)
    client = Client(context)
    (layer, *_) = Carriage(listen).make_layers("")
    shake_hands(layer, client)
    return client.object.selected_alpn_protocol()


@pytest.mark.parametrize(
    ("name", "websocket", "protocol"),
    [("mqtt", "", "mqtt"), ("mqtt", "/mqtt", "http/1.1"), ("amqp", "", "amqp"), ("admin", "", "http/1.1")],
)
def test_each_door_agrees_to_its_own_protocol(name, websocket, protocol):
    listen = Listen(name, ANY_PORT, tls(), websocket=websocket)
    assert protocol_of(listen, ["h2", protocol]) == protocol


def open_as(listen, **client):
    """Return what a client that shakes hands has of its connection."""
    context = client_context(**client)
    context.check_hostname = False
    found = Client(context, "b.test")
    (layer, *_) = Carriage(listen).make_layers("")
    shake_hands(layer, found)
    return found.object


def test_terms_of_tls_are_those_of_the_settings(tmp_path):
    gone, other = client_files("gone"), issue(tmp_path / "b", "b.test")
    crl = revoke(tmp_path, gone[0])
    more = ({"certificate": other[0], "key": other[1]},)
    listen = Listen("mqtt", ANY_PORT, tls(client_ca=authority_file(), crl=crl, more_certificates=more))
    shown = open_as(listen, shows=client_files()).getpeercert(binary_form=True)
    assert x509.load_der_x509_certificate(shown) == x509.load_pem_x509_certificate(other[0].read_bytes())
    with pytest.raises(StreamError, match="certificate revoked"):
        open_as(listen, shows=gone)
    old = {"version": ssl.TLSVersion.TLSv1_2}
    with pytest.raises(StreamError, match="unsupported protocol"):
        open_as(Listen("amqp", ANY_PORT, tls(version_min="1.3")), **old)
    ciphers = "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
    assert "CHACHA20" in open_as(Listen("amqp", ANY_PORT, tls(ciphers=ciphers)), **old).cipher()[0]
    with pytest.raises(StreamError, match="no protocol was agreed to"):
        open_as(Listen("mqtt", ANY_PORT, tls(alpn_required=True)))
    optional = Listen("mqtt", ANY_PORT, tls(client_ca=authority_file(), client_certificate="optional"))
    assert open_as(optional).version()
    with pytest.raises(StreamError, match="did not return a certificate"):
        open_as(Listen("mqtt", ANY_PORT, tls(client_ca=authority_file())))


def test_files_that_change_have_other_stamps(tmp_path):
    certificate, key = issue(tmp_path)
    carriage = Carriage(Listen("mqtt", ANY_PORT, tls(certificate=certificate, key=key)))
    assert carriage.look() == carriage.stamps
    issue(tmp_path)
    assert carriage.look() != carriage.stamps
    key.unlink()
    assert carriage.look()[1] is None
    with pytest.raises(SettingsError, match="tls of mqtt on"):
        carriage.read()


def test_names_of_clients_are_taken_from_where_the_settings_say():
    listen = Listen("mqtt", ANY_PORT, tls(client_ca=authority_file(), user_from="dns"), client_id_from="common_name")
    (layer,) = Carriage(listen).make_layers("")
    shake_hands(layer, Client(client_context(shows=client_files())))
    peer = layer.peer(Peer())
    assert (peer.name, peer.client) == ("sensor-1.test", "sensor-1")
    assert x509.load_der_x509_certificate(peer.certificate).subject.rfc4514_string().split(",")[0] == "CN=sensor-1"


def test_name_is_user_is_the_common_name():
    (layer,) = Carriage(Listen("amqp", ANY_PORT, tls(client_ca=authority_file(), name_is_user=True))).make_layers("")
    shake_hands(layer, Client(client_context(shows=client_files())))
    assert layer.peer(Peer()).name == "sensor-1"
