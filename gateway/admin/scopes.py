"""What tokens of the API are for: reading, or a part of it, in the words that `lmq token add --scope` takes.

A token is never more than its user is at the moment.
"""

from __future__ import annotations

from collections.abc import Collection

from gateway.admin.same_site import LOOKS

READ = "read"
ALL = "administrator"
MESSAGES = "messages"
PARTS = {
    "users": ("/api/users", "/api/lmq/users", "/api/permissions", "/api/topic-permissions", "/api/user-limits"),
    "vhosts": ("/api/vhosts", "/api/vhost-limits"),
    "policies": ("/api/policies", "/api/operator-policies", "/api/parameters", "/api/global-parameters"),
    "definitions": ("/api/definitions",),
    "queues": (
        "/api/queues",
        "/api/exchanges",
        "/api/bindings",
        "/api/rebalance",
        "/api/lmq/move",
        "/api/lmq/replay",
    ),
    "connections": ("/api/connections", "/api/lmq/sessions", "/api/lmq/groups"),
    "rules": ("/api/lmq/rules",),
    "tokens": ("/api/lmq/tokens",),
    "gateway": ("/api/lmq/log-levels", "/api/lmq/logs", "/api/lmq/retention", "/api/lmq/settings"),
    MESSAGES: ("/api/lmq/messages", "/api/lmq/trace", "/api/lmq/retained", "/api/lmq/delayed", "/api/messages"),
}
SCOPES = (READ, ALL, *PARTS)
_OF_MESSAGES = ("/publish", "/get")  # what paths of queues and exchanges end with that give messages or take them
_OPEN = ("/api/whoami",)


def find_part(path: str) -> str:
    """Return the part of the API that a path belongs to, empty: none that has a scope of its own."""
    if path.startswith(PARTS["queues"]) and path.endswith(_OF_MESSAGES):
        return MESSAGES
    for part, prefixes in PARTS.items():
        if any(path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes):
            return part
    return ""


def may_manage(scopes: Collection[str], path: str) -> bool:
    """Return whether a token is for all that there is at a path."""
    return ALL in scopes or find_part(path) in scopes


def may_look(scopes: Collection[str], method: str, path: str) -> bool:
    """Return whether a token is for looking at a path as users do that are no administrators."""
    return is_open(path) or (READ in scopes and method in LOOKS)


def is_open(path: str) -> bool:
    """Return whether a path tells the caller its own name, and no more."""
    return path in _OPEN


def covers(scopes: Collection[str], wanted: Collection[str]) -> bool:
    """Return whether the holder of some scopes may give others away."""
    return ALL in scopes or set(wanted) <= set(scopes)
