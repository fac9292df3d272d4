from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from gateway.admin.tls_metrics import tls_families
from gateway.carriage import SecureAddress
from gateway.net.streams.certificate_file import Certificate
from gateway.net.streams.tls_counts import TlsCounts


class Collector:
    def collect(self):
        certificates = (
            Certificate(Path("a"), ("a.test", "b.test"), 1, 2_000_000_000),
            Certificate(Path("b"), (), 1, 2),
        )
        counts = TlsCounts()
        counts.shaken["TLSv1.3"] += 3
        counts.note_failed("no tls, but http")
        yield from tls_families([SecureAddress("mqtts", "0.0.0.0:8883", certificates, counts)])


def test_expiry_of_each_certificate_and_handshakes_are_told():
    registry = CollectorRegistry()
    registry.register(Collector())
    text = generate_latest(registry).decode()
    where = 'address="0.0.0.0:8883"'
    assert f'lmq_certificate_expires_seconds{{{where},host="a.test",listener="mqtts"}} 2e+09' in text
    assert f'lmq_certificate_expires_seconds{{{where},host="",listener="mqtts"}} 2.0' in text
    assert f'lmq_tls_handshakes_total{{{where},listener="mqtts",version="TLSv1.3"}} 3.0' in text
    assert f'lmq_tls_handshake_failures_total{{{where},listener="mqtts",reason="not_tls"}} 1.0' in text
