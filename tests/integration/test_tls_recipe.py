"""The certificates that the operators' manual has one make."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess

import pytest

from gateway.net.streams.tls import TlsLayer
from gateway.net.streams.tls_context import TlsFiles, make_context
from tests.support.sources import ROOT
from tests.support.tls import Client, shake_hands

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the command openssl")


def test_certificates_of_the_manual_are_taken_by_the_gateway_and_its_clients(tmp_path):
    page = (ROOT / "docs/operations.md").read_text()
    (recipe,) = [block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "openssl req" in block]
    subprocess.run(["sh", "-e", "-c", recipe], cwd=tmp_path, check=True, capture_output=True)
    folder = tmp_path / "tls"
    context = make_context(TlsFiles(folder / "server.pem", folder / "server.key"))
    for host in ("localhost", "127.0.0.1"):
        client = Client(ssl.create_default_context(cafile=folder / "ca.pem"), host)
        shake_hands(TlsLayer(context), client)
        assert client.object.version() == "TLSv1.3"
