"""Mosquitto's `password_file` and `acl_file`, as users and rules.

Source: mosquitto.conf(5), "acl_file", and the order in which Mosquitto 2.0 looks at the lines: of the user first what
is denied, then what is allowed, then the same of the patterns, which are for everybody. Lines before the first `user`
are for clients without a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gateway.commands.mosquitto.lines import Line, MosquittoFileError

ACTIONS_BY_ACCESS: dict[str, list[str] | None] = {
    "read": ["subscribe"],
    "write": ["publish"],
    "readwrite": None,  # both: what a rule is for that names no actions
    "deny": None,
}
HASHES = ("$6$", "$7$", "$argon2id$")
ANY_NAME = "?*"  # of a user: at least one character
_GLOB_CHARS = re.compile(r"[*?]")

Rule = dict[str, Any]


def read_passwords(lines: Iterable[str], name: str) -> tuple[dict[str, str], list[str]]:
    """Return the hashes by user, and what is not taken, with its place. `name` is the file's."""
    found: dict[str, str] = {}
    left_out: list[str] = []
    for number, line in enumerate(lines, 1):
        user, colon, kept = line.strip().partition(":")
        if not user or user.startswith("#"):
            continue
        if colon and kept.startswith(HASHES):
            found[user] = kept
        else:
            left_out.append(f"{name}:{number}: user {user!r} has no hash that mosquitto_passwd made")
    return found, left_out


class _Topics:
    """What stands for one user, or in patterns: filters by what they give or take."""

    def __init__(self) -> None:
        self._filters: dict[str, list[str]] = {}  # by access

    def add(self, access: str, topic_filter: str) -> None:
        """Take one line."""
        self._filters.setdefault(access, []).append(topic_filter)

    def rules(self, users: list[str] | None) -> Iterator[Rule]:
        """Yield denials first: they go before permissions, wherever they stand in the file."""
        for access in sorted(self._filters, key=lambda access: access != "deny"):
            rule: Rule = {"permit": "deny" if access == "deny" else "allow"}
            if users is not None:
                rule["users"] = users
            if (actions := ACTIONS_BY_ACCESS[access]) is not None:
                rule["actions"] = actions
            yield {**rule, "topics": self._filters[access]}


def read_acl(lines: Iterable[Line]) -> tuple[list[Rule], list[str]]:
    """Return rules that stand in the settings' `auth.rules`, in their order, and what is not taken, with its place.

    Raises:
        MosquittoFileError: A line gives something that is no right.
    """
    by_user: dict[str, _Topics] = {}
    named, unnamed = _Topics(), _Topics()  # patterns with %u, which are not for clients without a name, and others
    user = ""
    left_out: list[str] = []
    for line in lines:
        access, topic_filter = _split_access(line)
        if line.word == "user":
            user = line.rest
        elif line.word == "pattern":
            (named if "%u" in topic_filter else unnamed).add(access, topic_filter)
        elif line.word != "topic":
            left_out.append(f"{line.place}: {line.word}: no word of an ACL file")
        elif "%u" in topic_filter or "%c" in topic_filter:
            left_out.append(f"{line.place}: {topic_filter}: %u and %c stand for themselves there, and not in a rule")
        else:
            by_user.setdefault(user, _Topics()).add(access, topic_filter)
    rules = [rule for name, topics in by_user.items() for rule in topics.rules([user_pattern(name)])]
    patterns = [*named.rules([ANY_NAME]), *unnamed.rules(None)]
    return rules + sorted(patterns, key=lambda rule: rule["permit"] != "deny"), left_out


def _split_access(line: Line) -> tuple[str, str]:
    """Return what a line gives or takes, and its filter, which may have blanks."""
    access, _, topic_filter = line.rest.partition(" ")
    if access in ACTIONS_BY_ACCESS:
        return access, topic_filter.strip()
    if topic_filter and line.word in {"topic", "pattern"}:
        raise MosquittoFileError(f"{line.place}: {access}: must be read, write, readwrite or deny")
    return "readwrite", line.rest


def user_pattern(name: str) -> str:
    """Return the pattern of a rule that is for one user; the empty name is that of clients without one."""
    return f"re:^{re.escape(name)}$" if _GLOB_CHARS.search(name) or name.startswith("re:") else name
