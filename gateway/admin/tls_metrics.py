"""What `/metrics` says of TLS: when certificates expire, and how handshakes went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from gateway.carriage import SecureAddress


def tls_families(addresses: Iterable[SecureAddress]) -> Iterator[Metric]:
    """Yield the metrics of all addresses with TLS."""
    where = ("listener", "address")
    expiry = GaugeMetricFamily(
        "lmq_certificate_expires_seconds", "When a certificate expires, since 1970.", labels=(*where, "host")
    )
    shaken = CounterMetricFamily("lmq_tls_handshakes", "Handshakes of TLS that went well.", labels=(*where, "version"))
    failed = CounterMetricFamily(
        "lmq_tls_handshake_failures", "Handshakes of TLS that failed.", labels=(*where, "reason")
    )
    for one in addresses:
        for certificate in one.certificates:
            host = certificate.names[0] if certificate.names else ""
            expiry.add_metric((one.name, one.address, host), certificate.expires_at_s)
        for version, count in sorted(one.counts.shaken.items()):
            shaken.add_metric((one.name, one.address, version), count)
        for reason, count in sorted(one.counts.failed.items()):
            failed.add_metric((one.name, one.address, reason), count)
    yield from (expiry, shaken, failed)
