"""Finds the setting that an unknown name may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_CLOSE = 0.6  # difflib's own
_CLOSE_BESIDE = 0.5  # in the right table a little is enough
# What other brokers call things: by the last word of the name, the last word here.
_ELSEWHERE = {
    **dict.fromkeys(("port", "host", "address", "bind", "bind_address", "listener", "listeners"), "listen"),
    "allow_anonymous": "mqtt_anonymous",
    "max_connections": "connections_max",
    "heartbeat": "heartbeat_s",
    "dir": "data_dir",
    **dict.fromkeys(("allow", "deny", "permission"), "permit"),
    **dict.fromkeys(("user", "username"), "users"),
}


def find_close_name(path: str, known: Sequence[str]) -> str | None:
    """Return the setting or table in `known` that is most like a dotted name; None where none is like it.

    First come settings of the same table by their last words, then all names and tables as wholes.
    """
    table, _, word = path.rpartition(".")
    meant = f"{table}.{_ELSEWHERE.get(word, word)}".lstrip(".")
    if meant in known:
        return meant
    beside = [name.rpartition(".")[2] for name in known if name.rpartition(".")[0] == table]
    close = difflib.get_close_matches(word, beside, n=1, cutoff=_CLOSE_BESIDE)
    if close:
        return f"{table}.{close[0]}".lstrip(".")
    tables = {name.rpartition(".")[0] for name in known} - {"", table}
    close = difflib.get_close_matches(path, [*known, *sorted(tables)], n=1, cutoff=_CLOSE)
    return close[0] if close else None
