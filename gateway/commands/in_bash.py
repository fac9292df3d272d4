"""What bash is given to complete a word.

Bash takes words apart at `:` and `=`, replaces what stands behind the last of these, and puts a completion into the
line as it is: a name with a blank would be two arguments, one with `|` a pipe.

Source: bash(1), "Programmable Completion", COMP_WORDS and COMP_WORDBREAKS.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from contextlib import redirect_stdout

ASKED = {"_LMQ_COMPLETE": "complete_bash"}
BREAKS = ":="
_SPECIAL = re.compile(r"[^\w@%+=:,./-]")
_SPECIAL_IN_QUOTES = re.compile(r'[\\"$`]')  # double ones, between which a backslash does not stop bash's `!`


def is_asked() -> bool:
    """Return whether this process was started by bash, to complete a word."""
    return all(os.environ.get(name) == value for name, value in ASKED.items())


def complete(run: Callable[[], object]) -> None:
    """Have `run` print completions for the words as they were typed, and print them as bash has to have them."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    at = os.environ.get("COMP_CWORD", "")
    typed = join_words(words[: int(at) + 1] if at.isdigit() else words)
    os.environ.update(COMP_WORDS="\n".join(typed), COMP_CWORD=str(len(typed) - 1))
    found = io.StringIO()
    try:
        with redirect_stdout(found):
            run()
    finally:
        for value in found.getvalue().splitlines():
            print(shape(value, typed[-1]))


def join_words(pieces: list[str]) -> list[str]:
    """Return words, the last the one at the cursor, of what bash took apart."""
    words: list[str] = []
    is_open = False  # what comes next belongs to the last word
    for piece in pieces:
        is_break = piece != "" and not piece.strip(BREAKS)
        if words and piece and (is_break or is_open):
            words[-1] += piece
        else:
            words.append(piece)
        is_open = is_break
    return words


def shape(value: str, typed: str) -> str:
    """Return what bash puts in the place of the last piece of the word `typed`, so that the word becomes `value`."""
    if typed[:1] == "'":
        return value.replace("'", "'\\''")  # bash ends the quotes
    if typed[:1] == '"':
        return _SPECIAL_IN_QUOTES.sub(r"\\\g<0>", value).replace("!", '"\\!"')
    plain = typed.replace("\\", "")
    start = plain[: max(map(plain.rfind, BREAKS)) + 1]
    return _SPECIAL.sub(r"\\\g<0>", value.removeprefix(start))
