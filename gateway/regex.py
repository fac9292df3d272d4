r"""Regular expressions that others write, in patterns of policies and rights: RE2's, so that none can hold the loop.

RE2 looks around nowhere. What lists of RabbitMQ's policies nearly all have is understood all the same: look-aheads
that stand at the very start, as in `^(?!amq\.).*`, where each is a question of its own about the start of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import re2

REGEX_BYTES_MAX = 1 << 20  # of memory for one compiled expression; chosen: an expression is one of thousands
AHEADS_MAX = 8  # look-aheads of one expression, each of which is searched for by itself
_AHEADS = {"(?!": False, "(?=": True}
# Where a text begins or ends, bytes, what means itself, and flags that are taken back: lines are searched otherwise.
_OF_WHOLE_TEXTS = re2.compile(r"\\[AzCQ]|\(\?[a-zA-Z]*-|\n")
# What finds no line break anywhere: places, characters, groups, and classes of few kinds.
_INSIDE_LINES = re2.compile(r"(?:[^\\\[\x00-\x1f]|\\(?:[dwb]|[^\w\s])|\[[\w. -]+\])*")
_LOOKS = (*_AHEADS, "(?<!", "(?<=")


class _Place(Protocol):
    def start(self) -> int:
        """Return the first byte of what was found."""


class _InBytes(Protocol):
    def search(self, text: bytes, pos: int) -> _Place | None:
        """Return where it matches first from a byte on."""


class Regex(Protocol):
    """A compiled regular expression."""

    def search(self, text: str) -> object:
        """Return where it matches first, None where it does not."""


class Lines:
    """An expression that is looked for in many lines at once, at a tenth of what each costs by itself.

    Args:
        compiled: It, held to lines.
        of_all: What is found where it is in each line of a whole text; None: it may find line breaks.
    """

    def __init__(self, compiled: _InBytes, of_all: _InBytes | None = None) -> None:
        self._compiled = compiled
        self._of_all = of_all

    @property
    def tells_all(self) -> bool:
        """Return whether `are_all` ever says so."""
        return self._of_all is not None

    def are_all(self, lines: bytes) -> bool:
        """Return whether each line has it, as far as that is quick to tell; False where it is not."""
        return self._of_all is not None and self._of_all.search(lines + b"\n", 0) is not None

    def find(self, lines: bytes) -> Iterator[int]:
        """Give a place in each line that has it, in their order."""
        at = 0
        while at <= len(lines) and (found := self._compiled.search(lines, at)) is not None:
            yield found.start()
            end = lines.find(b"\n", found.start())
            if end < 0:
                return
            at = end + 1


class _AfterLooks:
    """An expression that is held to the start of a text, and what has to stand there, or must not."""

    def __init__(self, rest: Regex, looks: Sequence[tuple[Regex, bool]]) -> None:
        self._rest = rest
        self._looks = looks

    def search(self, text: str) -> object:
        """Return where it matches, None where it does not."""
        if any((look.search(text) is not None) is not wanted for look, wanted in self._looks):
            return None
        return self._rest.search(text)


def compile_regex(text: str) -> Regex:
    """Return a compiled regular expression, of which the time is linear in what it is matched with.

    Raises:
        ValueError: It is none, or looks around elsewhere than ahead from the start.
    """
    try:
        return _compile(text)
    except ValueError as error:
        split = _split_aheads(text)
        if split is None and any(look in text for look in _LOOKS):
            raise ValueError(f"{error}; it may look ahead right behind a ^ at its start, and nowhere else") from error
        if split is None:
            raise
    rest, looks = split_looks(text)
    return _AfterLooks(_compile(rest), [(_compile(look), wanted) for look, wanted in looks])


def split_looks(text: str) -> tuple[str, list[tuple[str, bool]]]:
    """Return what RE2 takes of an expression that is one, and what else has to match, or must not, for it to match."""
    try:
        _compile(text)
    except ValueError:
        aheads, rest = _split_aheads(text) or ([], text)
        return f"^{rest}", [(f"^(?:{ahead})", wanted) for ahead, wanted in aheads]
    return text, []


def is_everywhere(text: str, compiled: Regex) -> bool:
    """Return whether an expression is found in any text, such as `.*`: it is in an empty one, and asks for no place."""
    return not any(char in text for char in "^$\\") and compiled.search("") is not None


def compile_lines(text: str) -> Lines | None:
    """Return an expression for many lines, None where it asks for more than one line has, or is none."""
    if _OF_WHOLE_TEXTS.search(text) is not None:
        return None
    options = _options()
    options.never_capture = True
    try:
        has_flags = "(?" in text.replace("(?:", "(")
        is_inside = not has_flags and _INSIDE_LINES.fullmatch(text) is not None
        of_all = re2.compile(rf"(?m)\A(?:.*(?:{text}).*\n)*\z", options) if is_inside else None
        options.never_nl = True
        return Lines(re2.compile(f"(?m){text}", options), of_all)
    except re2.error:
        return None


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = REGEX_BYTES_MAX
    return options


def _compile(text: str) -> Regex:
    try:
        compiled: Regex = re2.compile(text, _options())
    except re2.error as error:
        raise ValueError(f"is not a regular expression: {_said(error)}") from error
    return compiled


def _said(error: Exception) -> str:
    cause = error.args[0] if error.args else ""
    return cause.decode(errors="replace") if isinstance(cause, bytes) else str(cause)


def _split_aheads(text: str) -> tuple[list[tuple[str, bool]], str] | None:
    """Return the look-aheads behind a `^`, each with whether it has to match, and the rest; None where it is not so."""
    if not text.startswith("^") or "\\Q" in text:
        return None
    aheads: list[tuple[str, bool]] = []
    at = 1
    while len(aheads) < AHEADS_MAX and text[at : at + 3] in _AHEADS:
        end = _find_end(text, at + 3)
        if end < 0:
            return None
        aheads.append((text[at + 3 : end], _AHEADS[text[at : at + 3]]))
        at = end + 1
    rest = text[at:]
    is_one = _find_end(f"{rest})", 0) == len(rest) and not _has_choice(rest) and rest[:1] not in {"*", "+", "?", "{"}
    return (aheads, rest) if aheads and is_one else None


def _find_end(text: str, at: int) -> int:
    """Return where the parenthesis closes that is open at `at`, or -1."""
    return next((place for place, depth in _walk(text, at) if text[place] == ")" and depth < 0), -1)


def _has_choice(text: str) -> bool:
    """Return whether an expression is a choice of several, outside of parentheses."""
    return any(text[place] == "|" and depth == 0 for place, depth in _walk(text, 0))


def _walk(text: str, at: int) -> Sequence[tuple[int, int]]:
    """Return the places of parentheses and bars, and how deep it is behind each; not those that mean themselves."""
    found: list[tuple[int, int]] = []
    depth, class_at = 0, -1
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif class_at >= 0:
            is_first = at == class_at + 1 or (at == class_at + 2 and text[class_at + 1] == "^")
            if text.startswith("[:", at):
                end = text.find(":]", at)
                at = end + 1 if end >= 0 else at
            elif char == "]" and not is_first:
                class_at = -1
        elif char == "[":
            class_at = at
        elif char in "()|":
            depth += {"(": 1, ")": -1, "|": 0}[char]
            found.append((at, depth))
            if depth < 0:
                break
        at += 1
    return found
