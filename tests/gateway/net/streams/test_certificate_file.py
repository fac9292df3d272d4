from __future__ import annotations

import datetime as dt

import pytest
import trustme
from cryptography import x509
from hypothesis import given, settings, strategies as st

from gateway.net.streams.certificate_file import _not_after_s, expires_at_s
from tests.support.certificates import server_files


def made(not_after):
    return trustme.CA().issue_cert("localhost", not_before=dt.datetime(1999, 1, 1, tzinfo=dt.UTC), not_after=not_after)


@pytest.mark.parametrize("year", [2020, 2049, 2050, 2100])
def test_moment_is_that_of_the_certificate(tmp_path, year):
    at = dt.datetime(year, 2, 28, 23, 59, 58, tzinfo=dt.UTC)
    path = tmp_path / "c.pem"
    made(at).cert_chain_pems[0].write_to_path(path)
    assert expires_at_s(path) == int(at.timestamp())


def test_first_certificate_of_a_chain_counts_and_a_key_before_it_does_not():
    certificate, _ = server_files()
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    assert expires_at_s(certificate) == int(found.not_valid_after_utc.timestamp())


@pytest.mark.parametrize("text", ["", "nothing", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"])
def test_files_without_one_are_told(tmp_path, text):
    path = tmp_path / "c.pem"
    path.write_text(text)
    with pytest.raises(ValueError, match="certificate"):
        expires_at_s(path)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    try:
        _not_after_s(data)
    except (ValueError, IndexError):
        return
