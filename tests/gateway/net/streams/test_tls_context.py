from __future__ import annotations

import ssl

import pytest
from cryptography.hazmat.primitives import serialization

from gateway.net.streams.layer import StreamError
from gateway.net.streams.tls import TlsLayer
from gateway.net.streams.tls_context import TlsError, make_context, make_secured
from tests.support.certificates import (
    authority_file,
    client_context,
    client_files,
    issue,
    make_files,
    revoke,
    server_files,
)
from tests.support.tls import Client, shake_hands

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def open_with(files, **client):
    """Return the client's end of a connection that is secured by `files`."""
    found = Client(client_context(**client))
    shake_hands(TlsLayer(make_context(files)), found)
    return found.object


def test_files_that_cannot_be_used_are_named(tmp_path):
    certificate, key = server_files()
    other = issue(tmp_path / "other")[1]
    text = tmp_path / "text.pem"
    text.write_text("nothing")
    with pytest.raises(TlsError, match=rf"cannot read {tmp_path}/none and {key}: No such file"):
        make_context(make_files(certificate=tmp_path / "none"))
    with pytest.raises(TlsError, match=rf"cannot use {certificate} and {other}: key values mismatch"):
        make_context(make_files(key=other))
    with pytest.raises(TlsError, match=rf"cannot use {text}: "):
        make_context(make_files(certificate=text, key=None))
    with pytest.raises(TlsError, match=rf"cannot use {text}: "):
        make_context(make_files(client_ca=text))
    with pytest.raises(TlsError, match="no cipher of 'FOO' is known"):
        make_context(make_files(ciphers="FOO"))


def test_a_key_with_a_pass_phrase_is_refused_and_nobody_is_asked_for_it(tmp_path):
    certificate, key = server_files()
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(TlsError, match=rf"cannot use {certificate} and {locked}: the key has a pass phrase"):
        make_context(make_files(key=locked))


def test_certificate_and_key_may_be_in_one_file(tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes(b"".join(path.read_bytes() for path in server_files()))
    assert open_with(make_files(certificate=both, key=None)).version() == "TLSv1.3"


def test_ciphers_are_those_of_the_setting():
    files = make_files(ciphers="ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305")
    assert "CHACHA20" in open_with(files, version=ssl.TLSVersion.TLSv1_2).cipher()[0]


def test_a_version_below_the_least_is_refused():
    files = make_files(version_min="1.3")
    assert open_with(files).version() == "TLSv1.3"
    with pytest.raises(StreamError, match="tls: unsupported protocol"):
        open_with(files, version=ssl.TLSVersion.TLSv1_2)


# Several certificates


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("host", "number"),
    [
        ("one.test", 0),
        ("two.test", 1),
        ("TWO.test", 1),
        ("x.three.test", 2),
        ("three.test", 0),
        ("other.test", 0),
        ("127.0.0.1", 0),  # is named to no server
    ],
)
def test_each_host_has_its_certificate_and_any_other_the_first(tmp_path, version, host, number):
    pairs = [issue(tmp_path / name, name.replace("any", "*")) for name in ("one.test", "two.test", "any.three.test")]
    files = make_files(certificate=pairs[0][0], key=pairs[0][1], more=tuple(pairs[1:]))
    context = client_context(version=version)
    context.check_hostname = False
    client = Client(context, host)
    shake_hands(TlsLayer(make_context(files)), client)
    shown = ssl.DER_cert_to_PEM_cert(client.object.getpeercert(binary_form=True))
    assert pairs[number][0].read_text().startswith(shown)


def test_certificates_in_use_are_told_first_the_usual_one(tmp_path):
    first, second = issue(tmp_path / "a", "a.test"), issue(tmp_path / "b", "b.test")
    secured = make_secured(make_files(certificate=first[0], key=first[1], more=(second,)))
    assert [certificate.names for certificate in secured.certificates] == [("a.test",), ("b.test",)]


def test_a_client_shows_its_certificate_by_whatever_name_it_calls_us(tmp_path):
    second = issue(tmp_path / "b", "b.test")
    context = make_context(make_files(more=(second,), client_ca=authority_file()))
    shake_hands(TlsLayer(context), Client(client_context(shows=client_files()), "b.test"))
    with pytest.raises(StreamError, match="peer did not return a certificate"):
        shake_hands(TlsLayer(context), Client(client_context(), "b.test"))


# Certificates that were revoked


@pytest.mark.parametrize("version", VERSIONS)
def test_a_certificate_that_was_revoked_is_refused_and_others_are_not(tmp_path, version):
    crl = revoke(tmp_path, client_files("gone")[0])
    files = make_files(client_ca=authority_file(), crl=crl)
    assert open_with(files, shows=client_files(), version=version).version()
    with pytest.raises(StreamError, match="certificate verify failed: certificate revoked"):
        open_with(files, shows=client_files("gone"), version=version)


def test_a_list_of_another_authority_lets_nobody_in(tmp_path):
    authority_file("second")
    files = make_files(client_ca=authority_file(), crl=revoke(tmp_path, of="second"))
    with pytest.raises(StreamError, match="unable to get certificate CRL"):
        open_with(files, shows=client_files())


def test_a_file_without_a_list_is_told():
    with pytest.raises(TlsError, match="no list of revoked certificates is in it"):
        make_context(make_files(client_ca=authority_file(), crl=authority_file()))
