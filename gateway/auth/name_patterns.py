"""Patterns of names: a name itself, a glob (`*` any characters, `?` one), or a regular expression behind `re:`.

An expression is looked for anywhere in a name, as RabbitMQ does it, unless it has `^` and `$`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from gateway.auth.rule_trie import NO_RULE
from gateway.regex import compile_regex
from gateway.settings.rules import EXPRESSION

CLIENT = "%c"
USER = "%u"
_PLACES = re.compile("%[cu]")


def is_exact(pattern: str) -> bool:
    """Return whether a pattern is one name."""
    return not pattern.startswith(EXPRESSION) and "*" not in pattern and "?" not in pattern


def has_place(pattern: str) -> bool:
    """Return whether a pattern is another one for each user or client."""
    return _PLACES.search(pattern) is not None


def fill_in_topic(topic_filter: str, user: str, client: str) -> str | None:
    """Return a filter with user and client in place of `%u` and `%c`; None where one is none, or has a wildcard.

    None, too, where a name would make the filter begin with `$`: a client that calls itself `$events` gets no more by
    `%c/#` than by `#`.
    """
    values = {USER: user, CLIENT: client}
    for place in _PLACES.findall(topic_filter):
        if not values[place] or set(values[place]) & set("+#"):
            return None
    filled = _PLACES.sub(lambda found: values[found[0]], topic_filter)
    return None if filled.startswith("$") and not topic_filter.startswith("$") else filled


def fill_in(pattern: str, user: str, client: str) -> str | None:
    """Return a pattern with user and client in place of `%u` and `%c`, as they are; None where one is none."""
    values = {USER: user, CLIENT: client}
    if not all(values[place] for place in _PLACES.findall(pattern)):
        return None
    if is_exact(pattern):
        filled = _PLACES.sub(lambda found: values[found[0]], pattern)
        return filled if is_exact(filled) else f"{EXPRESSION}^{escape(filled)}$"  # what a name has is no wildcard
    if not pattern.startswith(EXPRESSION):
        pattern = EXPRESSION + regex_of(pattern)
    return _PLACES.sub(lambda found: escape(values[found[0]]), pattern)


def escape(text: str) -> str:
    """Return a regular expression of one text."""
    return "".join(letter if letter.isalnum() or letter == "_" else f"\\x{{{ord(letter):x}}}" for letter in text)


def regex_of(glob: str) -> str:
    """Return the regular expression of a glob."""
    parts = re.split("([*?]|%[cu])", glob)
    signs = {"*": "(?s:.)*", "?": "(?s:.)", USER: USER, CLIENT: CLIENT}
    return f"^{''.join(signs.get(part) or escape(part) for part in parts)}$"


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return what says whether a name is one of a pattern's."""
    if is_exact(pattern):
        return pattern.__eq__
    is_expression = pattern.startswith(EXPRESSION)
    search = compile_regex(pattern.removeprefix(EXPRESSION) if is_expression else regex_of(pattern)).search
    return lambda name: search(name) is not None


def compile_any(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return what says whether a name is one of several patterns'."""
    exact = {pattern for pattern in patterns if is_exact(pattern)}
    others = [compile_pattern(pattern) for pattern in patterns if not is_exact(pattern)]
    return lambda name: name in exact or any(matches(name) for matches in others)


class NameIndex:
    """Patterns with the numbers of their rules, to be added in the order of the numbers."""

    __slots__ = ("_always", "_exact", "_others", "_prefixes")

    def __init__(self) -> None:
        self._always = NO_RULE
        self._exact: dict[str, int] = {}
        self._prefixes: dict[int, dict[str, int]] = {}  # `text*`, by the length of the text
        self._others: list[tuple[int, Callable[[str], bool]]] = []

    def add(self, pattern: str, number: int) -> None:
        """Add a pattern of a rule."""
        head = pattern[:-1]
        if pattern == "*":
            self.add_always(number)
        elif is_exact(pattern):
            self._exact.setdefault(pattern, number)
        elif pattern.endswith("*") and is_exact(head) and not pattern.startswith(EXPRESSION):
            self._prefixes.setdefault(len(head), {}).setdefault(head, number)
        else:
            self._others.append((number, compile_pattern(pattern)))

    def add_always(self, number: int) -> None:
        """Add a rule that is for all names."""
        self._always = min(self._always, number)

    def find_first(self, name: str) -> int:
        """Return the lowest number of a rule that is for a name, `NO_RULE` where none is."""
        best = min(self._always, self._exact.get(name, NO_RULE))
        for length, heads in self._prefixes.items():
            best = min(best, heads.get(name[:length], NO_RULE))
        for number, matches in self._others:
            if number >= best:
                break
            if matches(name):
                return number
        return best
