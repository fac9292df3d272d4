"""What a listener may name among its authenticators, beside back ends by their names."""

from __future__ import annotations

CERTIFICATE, USERS, JWT, BACKENDS = "certificate", "users", "jwt", "backends"
API_TOKENS, GUEST_LOGIN, ANONYMOUS = "api_tokens", "guest", "anonymous"
ALL_WAYS = (CERTIFICATE, USERS, JWT, BACKENDS, API_TOKENS, GUEST_LOGIN, ANONYMOUS)

Ways = frozenset[str] | None  # those that count where a client came, None: all, and the settings say which are open
