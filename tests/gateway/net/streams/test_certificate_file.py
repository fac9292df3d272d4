from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings, strategies as st

from gateway.net.streams.certificate_file import Certificate, _parse, read_certificate
from tests.support.certificates import server_files


def made(not_after):
    return trustme.CA().issue_cert("localhost", not_before=dt.datetime(1999, 1, 1, tzinfo=dt.UTC), not_after=not_after)


@pytest.mark.parametrize("year", [2020, 2049, 2050, 2100])
def test_moment_is_that_of_the_certificate(tmp_path, year):
    at = dt.datetime(year, 2, 28, 23, 59, 58, tzinfo=dt.UTC)
    path = tmp_path / "c.pem"
    made(at).cert_chain_pems[0].write_to_path(path)
    assert read_certificate(path).expires_at_s == int(at.timestamp())


def test_hosts_are_those_of_the_certificate(tmp_path):
    path = tmp_path / "c.pem"
    names = ["Plant.Example.com", "*.example.org", "10.1.2.3", "::1"]
    trustme.CA().issue_cert(*names, common_name="cn").cert_chain_pems[0].write_to_path(path)
    found = read_certificate(path)
    assert sorted(found.names) == ["*.example.org", "10.1.2.3", "::1", "plant.example.com"]
    assert found.begins_at_s < found.expires_at_s


def test_a_certificate_without_other_names_is_for_its_common_name(tmp_path):
    path = tmp_path / "c.pem"
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "o"), x509.NameAttribute(NameOID.COMMON_NAME, "H")])
    at = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, at, at + dt.timedelta(1))
    path.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    assert read_certificate(path) == Certificate(path, ("h",), int(at.timestamp()), int(at.timestamp()) + 86_400)


@pytest.mark.parametrize(
    ("host", "is_for"),
    [("a.test", True), ("x.b.test", True), ("b.test", False), ("y.x.b.test", False), ("localhost", False)],
)
def test_a_wildcard_stands_for_one_label(tmp_path, host, is_for):
    assert Certificate(tmp_path, ("a.test", "*.b.test"), 0, 0).is_for(host) is is_for


def test_first_certificate_of_a_chain_counts_and_a_key_before_it_does_not():
    certificate, _ = server_files()
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    assert read_certificate(certificate).expires_at_s == int(found.not_valid_after_utc.timestamp())


@pytest.mark.parametrize("text", ["", "nothing", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"])
def test_files_without_one_are_told(tmp_path, text):
    path = tmp_path / "c.pem"
    path.write_text(text)
    with pytest.raises(ValueError, match="certificate"):
        read_certificate(path)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    try:
        _parse(data)
    except (ValueError, IndexError):
        return


def test_a_certificate_is_to_be_replaced_two_weeks_before_its_end_or_in_its_last_third():
    day_s = 86_400
    for lasts_days, warned_days in ((365, 14), (30, 10)):
        certificate = Certificate(Path("a"), (), 0, lasts_days * day_s)
        ends = [certificate.ends_soon((lasts_days - left) * day_s) for left in (warned_days + 1, warned_days, 0, -9)]
        assert ends == [False, True, True, True]
