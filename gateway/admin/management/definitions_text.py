"""The text of a file of definitions, taken apart item by item: one of many megabytes does not hold the loop."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from json import JSONDecodeError, JSONDecoder

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = JSONDecoder()
WRITTEN_AT_ONCE = 500  # items of a file that is written


class DefinitionsTextError(ValueError):
    """A text that is no JSON object; it says where."""


def split_definitions(text: str) -> Iterator[tuple[str, object]]:
    """Give each member of the object that `text` is: its name, and the value, or each item of one that is a list.

    Raises:
        DefinitionsTextError: It is not JSON, or no object.
    """
    try:
        yield from _split(text)
    except (JSONDecodeError, RecursionError) as error:
        raise DefinitionsTextError(f"not JSON: {error}") from error


def _split(text: str) -> Iterator[tuple[str, object]]:
    pos = _skip(text, _expect(text, 0, "{"))
    is_first = True
    while text[pos : pos + 1] != "}":
        pos = pos if is_first else _skip(text, _expect(text, pos, ","))
        is_first = False
        if text[pos : pos + 1] != '"':
            raise JSONDecodeError("expected a name", text, pos)
        name, pos = _DECODER.raw_decode(text, pos)
        pos = _skip(text, _expect(text, pos, ":"))
        if text[pos : pos + 1] == "[":
            pos = yield from _items(text, name, pos)
        else:
            value, pos = _DECODER.raw_decode(text, pos)
            yield name, value
        pos = _skip(text, pos)
    if _skip(text, pos + 1) != len(text):
        raise JSONDecodeError("expected the end", text, pos + 1)


def _items(text: str, name: str, pos: int) -> Generator[tuple[str, object], None, int]:
    pos = _skip(text, pos + 1)
    is_first = True
    while text[pos : pos + 1] != "]":
        pos = pos if is_first else _skip(text, _expect(text, pos, ","))
        is_first = False
        value, pos = _DECODER.raw_decode(text, pos)
        yield name, value
        pos = _skip(text, pos)
    return pos + 1


def _expect(text: str, pos: int, sign: str) -> int:
    pos = _skip(text, pos)
    if text[pos : pos + 1] != sign:
        raise JSONDecodeError(f"expected {sign}", text, pos)
    return pos + 1


def _skip(text: str, pos: int) -> int:
    found = _SPACE.match(text, pos)
    assert found is not None
    return found.end()


def write_section(name: str, items: list[str]) -> Iterator[str]:
    """Give the parts of a member of the object whose value is a list, from its items as JSON."""
    yield f" {json.dumps(name)}: ["
    for at in range(0, len(items), WRITTEN_AT_ONCE):
        yield ("," if at else "") + "\n  " + ",\n  ".join(items[at : at + WRITTEN_AT_ONCE])
    yield "\n ]" if items else "]"
