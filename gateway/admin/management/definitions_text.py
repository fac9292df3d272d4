"""The text of a file of definitions, taken apart as it comes: one of many megabytes does not hold the loop."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = JSONDecoder()
_BEHIND_VALUES = frozenset(",]}")
WRITTEN_AT_ONCE = 500  # items of a file that is written; chosen, so that one go is within a step
Member = tuple[str, object]


class DefinitionsTextError(ValueError):
    """A text that is no JSON object; it says where."""


class _Step(NamedTuple):
    """What was read in one step: where it ends, how to go on, and what was found."""

    end: int
    go_on: Callable[[], _Step] | None
    found: Member | None = None


class DefinitionsSplitter:
    """Gives each member of the object that a text is: its name, and the value, or each item of one that is a list."""

    def __init__(self) -> None:
        self._text = ""  # from where the next step begins, as far as it was fed and looked at
        self._more: list[str] = []  # fed since then
        self._more_chars = 0
        self._pos = 0
        self._lines = 1  # up to the begin of `_text`
        self._is_whole = False
        self._go_on: Callable[[], _Step] | None = self._begin
        self._name = ""  # of the list that is being read

    def feed(self, text: str, *, is_last: bool = False) -> None:
        """Take more of the text."""
        self._more.append(text)
        self._more_chars += len(text)
        self._is_whole = is_last

    def found(self) -> Iterator[Member]:
        """Give what has come whole since the last call.

        Raises:
            DefinitionsTextError: The text is not JSON, or no object.
        """
        if self._more_chars < len(self._text) - self._pos and not self._is_whole:
            return  # an item that is not there yet is looked at again when there is twice as much of it
        self._lines += self._text.count("\n", 0, self._pos)
        self._text = "".join([self._text[self._pos :], *self._more])
        self._more, self._more_chars, self._pos = [], 0, 0
        while self._go_on is not None:
            try:
                step = self._go_on()
            except RecursionError as error:
                raise DefinitionsTextError(f"not JSON: {error}") from error
            except JSONDecodeError as error:
                if not self._is_whole:
                    return
                raise DefinitionsTextError(f"not JSON: {error.msg} in line {self._lines - 1 + error.lineno}") from error
            if step.end == len(self._text) and not self._is_whole:
                return
            self._pos, self._go_on = step.end, step.go_on
            if step.found is not None:
                yield step.found

    def _begin(self) -> _Step:
        return _Step(self._expect(self._pos, "{"), self._first_member)

    def _first_member(self) -> _Step:
        pos = self._skip(self._pos)
        return self._end_or(pos) or self._member(pos)

    def _next_member(self) -> _Step:
        pos = self._skip(self._pos)
        return self._end_or(pos) or self._member(self._skip(self._expect(pos, ",")))

    def _end_or(self, pos: int) -> _Step | None:
        return _Step(pos + 1, self._end) if self._text[pos : pos + 1] == "}" else None

    def _end(self) -> _Step:
        end = self._skip(self._pos)
        if end != len(self._text):
            raise JSONDecodeError("Expecting the end", self._text, end)
        return _Step(end, None)

    def _member(self, pos: int) -> _Step:
        if self._text[pos : pos + 1] != '"':
            raise JSONDecodeError("Expecting a name", self._text, pos)
        name, pos = _DECODER.raw_decode(self._text, pos)
        pos = self._skip(self._expect(pos, ":"))
        if self._text[pos : pos + 1] == "[":
            self._name = name
            return _Step(pos + 1, self._first_item)
        value, pos = self._value(pos)
        return _Step(pos, self._next_member, (name, value))

    def _first_item(self) -> _Step:
        pos = self._skip(self._pos)
        return self._end_of_list_or(pos) or self._item(pos)

    def _next_item(self) -> _Step:
        pos = self._skip(self._pos)
        return self._end_of_list_or(pos) or self._item(self._skip(self._expect(pos, ",")))

    def _end_of_list_or(self, pos: int) -> _Step | None:
        return _Step(pos + 1, self._next_member) if self._text[pos : pos + 1] == "]" else None

    def _item(self, pos: int) -> _Step:
        value, pos = self._value(pos)
        return _Step(pos, self._next_item, (self._name, value))

    def _value(self, pos: int) -> tuple[object, int]:
        """Return a value, and where what comes behind it begins: a number goes on until then."""
        value, end = _DECODER.raw_decode(self._text, pos)
        end = self._skip(end)
        if not self._is_whole and self._text[end : end + 1] not in _BEHIND_VALUES:
            raise JSONDecodeError("Expecting what comes behind a value", self._text, end)
        return value, end

    def _expect(self, pos: int, sign: str) -> int:
        pos = self._skip(pos)
        if self._text[pos : pos + 1] != sign:
            raise JSONDecodeError(f"Expecting {sign}", self._text, pos)
        return pos + 1

    def _skip(self, pos: int) -> int:
        found = _SPACE.match(self._text, pos)
        assert found is not None
        return found.end()


def write_section(name: str, items: list[str]) -> Iterator[str]:
    """Give the parts of a member of the object whose value is a list, from its items as JSON."""
    yield f" {json.dumps(name)}: ["
    for at in range(0, len(items), WRITTEN_AT_ONCE):
        yield ("," if at else "") + "\n  " + ",\n  ".join(items[at : at + WRITTEN_AT_ONCE])
    yield "\n ]" if items else "]"
