"""The words of an SQL92 filter.

Source: docs/protocols/rocketmq.md, "SQL filters".
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

TEXT_CHARS_MAX = 8_192  # of one filter; chosen: each heartbeat carries it
TOKENS_MAX = 2_048  # chosen: a filter is tried on each message, and each word costs
INTEGER_MAX = 2**63 - 1  # Java's long
INTEGER_DIGITS_MAX = 19  # of INTEGER_MAX
KEYWORDS = frozenset(
    "NOT AND OR BETWEEN IN TRUE FALSE NULL IS CONTAINS STARTSWITH ENDSWITH".split()  # noqa: SIM905 - they are words
)


class SqlError(Exception):
    """The filter is none; `reason` says why, for its author."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Kind(Enum):
    """What a word is."""

    NAME = "a name"
    KEYWORD = "a keyword"
    NUMBER = "a number"
    STRING = "a string"
    SIGN = "a sign"
    END = "the end"


class Token(NamedTuple):
    """One word: a name, a keyword in capitals, a number, the text of a string, or a sign; and where it begins."""

    kind: Kind
    value: str | int | float
    at: int


_WORDS = re.compile(
    r"""
    (?P<skip>[ \t\r\n\f]+|--[^\r\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    |(?P<float>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<integer>(?:0|[1-9][0-9]*)[lL]?)
    |(?P<string>'(?:[^']|'')*')
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<sign><>|<=|>=|[=<>(),+-])
    """,
    re.VERBOSE,
)


def split_words(text: str) -> list[Token]:
    """Return the words of a filter, the end as the last.

    Raises:
        SqlError: It is too long, or has something that is no word.
    """
    if len(text) > TEXT_CHARS_MAX:
        raise SqlError(f"the filter has more than {TEXT_CHARS_MAX} characters")
    tokens: list[Token] = []
    pos = 0
    while pos < len(text):
        found = _WORDS.match(text, pos)
        if found is None:
            raise SqlError(f"unexpected {text[pos : pos + 1]!r} at column {pos + 1}")
        if found.lastgroup != "skip":
            tokens.append(_read_word(found, pos))
        if len(tokens) > TOKENS_MAX:
            raise SqlError(f"the filter has more than {TOKENS_MAX} words")
        pos = found.end()
    tokens.append(Token(Kind.END, "", pos))
    return tokens


def _read_word(found: re.Match[str], pos: int) -> Token:
    text = found.group()
    match found.lastgroup:
        case "float":
            number = float(text)
            if number == float("inf"):
                raise SqlError(f"the number at column {pos + 1} is too large")
            return Token(Kind.NUMBER, number, pos)
        case "integer":
            digits = text.rstrip("lL")
            if len(digits) > INTEGER_DIGITS_MAX or int(digits) > INTEGER_MAX:
                raise SqlError(f"the number at column {pos + 1} is too large")
            return Token(Kind.NUMBER, int(digits), pos)
        case "string":
            return Token(Kind.STRING, text[1:-1].replace("''", "'"), pos)
        case "name":
            word = text.upper()
            return Token(Kind.KEYWORD, word, pos) if word in KEYWORDS else Token(Kind.NAME, text, pos)
        case _:
            return Token(Kind.SIGN, text, pos)
