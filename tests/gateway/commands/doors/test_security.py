from __future__ import annotations

import ssl

import pytest
import typer

from gateway.commands.doors.place import Tls
from gateway.commands.doors.security import make_context
from tests.support.certificates import authority_file, issue


def test_files_of_certificates_are_used(tmp_path, capsys):
    assert make_context(None) is None
    certificate, key = issue(tmp_path / "mine")
    context = make_context(Tls(authority_file(), certificate, key, insecure=False))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.get_ca_certs()[0]["subject"]
    assert make_context(Tls(None, None, None, insecure=True)).verify_mode is ssl.CERT_NONE
    with pytest.raises(typer.Exit):
        make_context(Tls(tmp_path / "none", None, None, insecure=False))
    assert "cannot use --ca, --cert or --key" in capsys.readouterr().err
