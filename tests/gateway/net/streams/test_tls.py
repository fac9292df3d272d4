"""TLS without sockets: a client's `SSLObject` on the other side."""

from __future__ import annotations

import contextlib
import ssl
import warnings

import pytest
from hypothesis import given, settings, strategies as st

from gateway.net.streams import tls
from gateway.net.streams.layer import Peer, StreamError
from gateway.net.streams.tls import RECORDS_AT_A_TIME, TlsLayer, TlsTerms
from gateway.net.streams.tls_context import make_context
from gateway.net.streams.tls_counts import TlsCounts
from tests.support.certificates import authority_file, client_context, client_files, make_files
from tests.support.tls import Client, shake_hands


def connected(version=None, **files):
    layer = TlsLayer(make_context(make_files(**files)))
    client = Client(client_context(version=version))
    shake_hands(layer, client)
    return layer, client


END = "-----END CERTIFICATE-----\n"
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_bytes_go_both_ways_after_a_handshake_however_it_is_cut(version, size):
    layer = TlsLayer(make_context(make_files()))
    client = Client(client_context(version=version))
    assert shake_hands(layer, client, size) == b""
    assert client.object.version() == version.name.replace("_", ".")
    client.object.write(b"hello")
    assert layer.receive_data(client.outgoing.read()) == b"hello"
    client.incoming.write(layer.send(memoryview(bytearray(b"and you"))))
    assert client.read() == b"and you"
    assert layer.send(b"") == b""


def test_hello_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(tls, "CLIENT_HELLO_BYTES_MAX", 20_000)
    layer = TlsLayer(make_context(make_files()))
    part = 10_000
    said = b"\x01" + (60_000).to_bytes(3) + bytes(59_000)  # of one message, in records of one part each
    records = [b"\x16\x03\x01" + part.to_bytes(2) + said[at : at + part] for at in range(0, 40_000, part)]
    assert layer.receive_data(records[0]) == b""
    with pytest.raises(StreamError, match="the handshake has no end"):
        for record in records[1:]:
            layer.receive_data(record)


def test_one_read_of_many_records_gives_one_piece():
    layer, client = connected()
    sent = bytes(range(256)) * 1_000
    for at in range(0, len(sent), 10_000):
        client.object.write(sent[at : at + 10_000])
    assert layer.receive_data(client.outgoing.read()) == sent
    client.incoming.write(layer.send(sent))
    got = bytearray()
    while part := client.read():
        got += part
    assert got == sent


def test_many_small_records_are_taken_in_turns():
    layer, client = connected()
    layer.is_over = lambda: True
    for _ in range(3 * RECORDS_AT_A_TIME + 1):
        client.object.write(b"x")
    got = [layer.receive_data(client.outgoing.read())]
    while layer.has_more:
        got.append(layer.receive_data(b""))
    assert b"".join(got) == b"x" * (3 * RECORDS_AT_A_TIME + 1)
    assert max(map(len, got)) == RECORDS_AT_A_TIME


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ends_tell_each_other_that_nothing_more_comes(version):
    layer, client = connected(version)
    client.object.write(b"bye")
    with pytest.raises(ssl.SSLWantReadError):
        client.object.unwrap()
    assert layer.receive_data(client.outgoing.read()) == b"bye"
    assert layer.is_ended
    if version is ssl.TLSVersion.TLSv1_3:  # before it the end of one side is the end of both
        client.incoming.write(layer.send(b"still here"))
    layer.close()
    layer.close()
    client.incoming.write(layer.data_to_send())
    if version is ssl.TLSVersion.TLSv1_3:
        assert client.read() == b"still here"
    client.object.unwrap()


def test_a_layer_that_is_not_open_ends_without_a_word():
    layer = TlsLayer(make_context(make_files()))
    layer.close()
    assert layer.data_to_send() == b""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x0a\x00\x02ab", "no TLS, but MQTT"),
        (b"AMQP\x00\x00\x09\x01", "no TLS, but AMQP"),
        (b"GET / HTTP/1.1\r\n\r\n", "no TLS, but HTTP"),
        (b"\x80\x2e\x01\x03\x01", "no TLS"),  # a hello of SSL 2
    ],
)
def test_what_is_not_tls_is_refused_by_what_it_is(said, told):
    counts = TlsCounts()
    layer = TlsLayer(make_context(make_files()), counts=counts)
    with pytest.raises(StreamError, match=f"^tls: {told}$"):
        layer.receive_data(said)
    assert counts.failed == {"not_tls": 1}


def test_old_versions_are_refused_with_an_alert():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context = client_context(version=ssl.TLSVersion.TLSv1_1)
    context.set_ciphers("ALL:@SECLEVEL=0")
    client = Client(context)
    client.step()
    layer = TlsLayer(make_context(make_files()))
    with pytest.raises(StreamError, match="tls: unsupported protocol"):
        layer.receive_data(client.outgoing.read())
    assert layer.data_to_send()[0] == 0x15  # an alert


def test_a_client_that_does_not_trust_the_server_says_so():
    layer = TlsLayer(make_context(make_files()))
    client = Client(client_context(trusts="second"))
    client.step()
    layer.receive_data(client.outgoing.read())
    client.incoming.write(layer.data_to_send())
    with pytest.raises(ssl.SSLCertVerificationError):
        client.step()
    with pytest.raises(StreamError, match="tls: the peer refuses the certificate of this server: unknown ca"):
        layer.receive_data(client.outgoing.read())


def try_client(*, shows, version, is_required=True):
    context = make_context(make_files(client_ca=authority_file(), is_client_required=is_required))
    layer = TlsLayer(context, TlsTerms(user_from="common_name"))
    shake_hands(layer, Client(client_context(shows=shows, version=version)))
    return layer.peer(Peer()).name


@pytest.mark.parametrize("version", VERSIONS)
def test_the_name_in_a_verified_certificate_is_known(version):
    assert try_client(shows=client_files(), version=version) == "sensor-1"


def test_the_name_in_a_certificate_tells_nothing_unless_it_is_the_users():
    layer = TlsLayer(make_context(make_files(client_ca=authority_file())))
    shake_hands(layer, Client(client_context(shows=client_files())))
    assert layer.peer(Peer()).name == ""


def test_the_certificate_itself_is_known_to_those_that_look_at_it():
    layer = TlsLayer(make_context(make_files(client_ca=authority_file())))
    assert layer.peer(Peer()).certificate == b""
    file, _ = client_files()
    shake_hands(layer, Client(client_context(shows=client_files())))
    assert layer.peer(Peer()).certificate == ssl.PEM_cert_to_DER_cert(file.read_text().split(END)[0] + END)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("shows", "reason"),
    [
        (None, "peer did not return a certificate"),
        (("sensor-1", "second", False), "certificate verify failed: .*(unable to get local issuer|self.signed)"),
        (("sensor-1", "first", True), "certificate verify failed: certificate has expired"),
    ],
)
def test_a_client_without_the_right_certificate_is_refused(version, shows, reason):
    shown = None if shows is None else client_files(shows[0], shows[1], is_expired=shows[2])
    with pytest.raises(StreamError, match=f"tls: {reason}"):
        try_client(shows=shown, version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_certificate_that_is_not_required_may_be_missing_but_not_wrong(version):
    assert try_client(shows=None, version=version, is_required=False) == ""
    assert try_client(shows=client_files(), version=version, is_required=False) == "sensor-1"
    with pytest.raises(StreamError, match="certificate verify failed"):
        try_client(shows=client_files(of="second"), version=version, is_required=False)


def test_a_peer_without_tls_is_let_through_as_it_is_where_that_is_allowed():
    layer = TlsLayer(make_context(make_files()), TlsTerms(is_optional=True))
    assert layer.receive_data(b"\x00\x00\x01\x00") == b"\x00\x00\x01\x00"
    assert layer.is_open
    assert layer.is_done
    assert layer.peer(Peer(name="x")).name == "x"
    assert layer.data_to_send() == b""


def test_a_peer_with_tls_is_served_by_it_where_it_need_not_be():
    layer = TlsLayer(make_context(make_files()), TlsTerms(is_optional=True))
    client = Client(client_context())
    shake_hands(layer, client, 1)
    client.object.write(b"hello")
    assert layer.receive_data(client.outgoing.read()) == b"hello"
    assert not layer.is_done


def test_damaged_records_end_the_stream_with_an_alert():
    layer, client = connected()
    client.object.write(b"hello")
    record = bytearray(client.outgoing.read())
    record[-1] ^= 1
    with pytest.raises(StreamError, match="tls: decryption failed or bad record mac"):
        layer.receive_data(bytes(record))
    assert layer.data_to_send()
    with pytest.raises(StreamError):
        layer.send(b"x")


def test_renegotiation_is_refused():
    assert make_context(make_files()).options & ssl.OP_NO_RENEGOTIATION


@settings(max_examples=300)
@given(st.binary(min_size=1, max_size=2_000), st.integers(0, 2))
def test_any_bytes_are_refused_or_wait(data, kind):
    layer = TlsLayer(make_context(make_files()))
    hello = Client(client_context())
    hello.step()
    first = hello.outgoing.read()
    prefix = (b"", b"\x16\x03\x01" + len(data).to_bytes(2), first[:60])[kind]
    with contextlib.suppress(StreamError):
        assert layer.receive_data(prefix + data) == b""
    assert not layer.is_open


def test_a_handshake_that_grows_without_end_is_refused():
    layer = TlsLayer(make_context(make_files()))
    with pytest.raises(StreamError):
        for _ in range(1_000):
            layer.receive_data(b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(16_380))


# What is agreed to


def open_with(protocols, **terms):
    """Return the protocol that a client agreed to that offers `protocols` where mqtt is served."""
    context = client_context()
    if protocols:
        context.set_alpn_protocols(protocols)
    client = Client(context)
    shake_hands(TlsLayer(make_context(make_files(protocols=("mqtt",))), TlsTerms(**terms)), client)
    return client.object.selected_alpn_protocol()


def test_the_protocol_that_both_know_is_agreed_to():
    assert open_with(["x-other", "mqtt"]) == "mqtt"
    assert open_with(["mqtt"], needs_protocol=True) == "mqtt"


@pytest.mark.parametrize("protocols", [[], ["http/1.1"]])
def test_a_client_that_offers_no_protocol_of_ours_is_served_or_refused_by_the_terms(protocols):
    assert open_with(protocols) is None
    with pytest.raises(StreamError, match="no protocol was agreed to"):
        open_with(protocols, needs_protocol=True)


@pytest.mark.parametrize(("source", "name"), [("dns", "sensor-1.test"), ("common_name", "sensor-1")])
def test_user_and_client_identifier_come_from_where_the_terms_say(source, name):
    context = make_context(make_files(client_ca=authority_file()))
    for terms, found in (
        (TlsTerms(user_from=source), Peer(name=name)),
        (TlsTerms(client_from=source), Peer(client=name)),
    ):
        layer = TlsLayer(context, terms)
        shake_hands(layer, Client(client_context(shows=client_files())))
        assert layer.peer(Peer())._replace(certificate=b"") == found


def test_a_certificate_without_the_name_of_its_client_is_refused():
    layer = TlsLayer(make_context(make_files(client_ca=authority_file())), TlsTerms(client_from="uri"))
    with pytest.raises(StreamError, match="no name of the kind uri"):
        shake_hands(layer, Client(client_context(shows=client_files())))


def test_handshakes_are_counted():
    counts = TlsCounts()
    context = make_context(make_files(client_ca=authority_file()))
    shake_hands(TlsLayer(context, counts=counts), Client(client_context(shows=client_files())))
    with pytest.raises(StreamError):
        shake_hands(TlsLayer(context, counts=counts), Client(client_context()))
    assert (counts.shaken, counts.failed) == ({"TLSv1.3": 1}, {"no_certificate": 1})
