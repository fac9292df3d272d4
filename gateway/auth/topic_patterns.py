"""How the filters of rules relate to those that are asked for.

Rules have MQTT's filters. What is asked for may also be an AMQP binding key in that form, which has `#` anywhere; such
a one is `wide`: its first wildcard also matches levels that begin with `$`, as no MQTT filter's does.
"""

from __future__ import annotations

from gateway.auth.rule_trie import ANY_LEVELS, ONE_LEVEL

Levels = list[bytes]


def covers(rule: Levels, asked: Levels, *, wide: bool) -> bool:
    """Return whether every topic that `asked` matches is one that `rule` does."""
    first = asked[0] if asked else b""
    hides_dollar = rule[0] in {ANY_LEVELS, ONE_LEVEL}
    if hides_dollar and (first.startswith(b"$") or (wide and first in {ANY_LEVELS, ONE_LEVEL})):
        return False
    return _covers(rule, asked, 0, 0, {})


def _covers(rule: Levels, asked: Levels, i: int, j: int, known: dict[tuple[int, int], bool]) -> bool:
    key = (i, j)
    if key not in known:
        known[key] = False  # while it is found out: the way round leads nowhere
        known[key] = _find_covers(rule, asked, i, j, known)
    return known[key]


def _find_covers(rule: Levels, asked: Levels, i: int, j: int, known: dict[tuple[int, int], bool]) -> bool:
    if i < len(rule) and rule[i] == ANY_LEVELS:
        return True
    if j == len(asked):
        return i == len(rule)
    if asked[j] == ANY_LEVELS:
        is_one = i < len(rule) and rule[i] == ONE_LEVEL
        return is_one and _covers(rule, asked, i, j + 1, known) and _covers(rule, asked, i + 1, j, known)
    if i == len(rule):
        return False
    return rule[i] in {ONE_LEVEL, asked[j]} and _covers(rule, asked, i + 1, j + 1, known)
