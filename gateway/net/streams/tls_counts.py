"""How handshakes of TLS went at one address, in few words."""

from __future__ import annotations

from collections import Counter

OTHER = "other"
# What OpenSSL's reasons, or ours, say first, and the word for it; the first that fits counts.
WORDS = (
    ("no tls", "not_tls"),
    ("wrong version number", "not_tls"),
    ("http request", "not_tls"),
    ("peer did not return a certificate", "no_certificate"),
    ("certificate verify failed: certificate has expired", "certificate_expired"),
    ("certificate verify failed: certificate revoked", "certificate_revoked"),
    ("certificate verify failed", "certificate_refused"),
    ("no name", "certificate_nameless"),
    ("unsupported protocol", "version"),
    ("no shared cipher", "cipher"),
    ("no protocol", "alpn"),
    ("the handshake has no end", "too_long"),
    ("the peer refuses", "refused_by_peer"),
    ("the peer gave up", "refused_by_peer"),
)


class TlsCounts:
    """Handshakes since the start: the good ones by version, the failed ones by a word for the reason."""

    __slots__ = ("failed", "shaken")

    def __init__(self) -> None:
        self.shaken: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def note_failed(self, reason: str) -> None:
        """Count a handshake that failed for a reason."""
        self.failed[next((word for start, word in WORDS if reason.startswith(start)), OTHER)] += 1
