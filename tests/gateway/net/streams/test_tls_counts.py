from __future__ import annotations

import pytest

from gateway.net.streams.tls_counts import TlsCounts


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("no tls, but http", "not_tls"),
        ("certificate verify failed: certificate has expired", "certificate_expired"),
        ("certificate verify failed: certificate revoked", "certificate_revoked"),
        ("certificate verify failed: self-signed certificate", "certificate_refused"),
        ("the peer refuses the certificate of this server: unknown ca", "refused_by_peer"),
        ("the peer gave up: handshake failure", "refused_by_peer"),
        ("what nobody knows " * 9, "other"),
    ],
)
def test_failures_are_counted_by_few_words(reason, word):
    counts = TlsCounts()
    counts.note_failed(reason)
    assert counts.failed == {word: 1}
