r"""Which of some lines have a regular expression, ten lines in one call of RE2's library.

A call costs a microsecond and more, and one for an expression tells of one place. A call for a set of expressions tells
which of them a text has. So the set has the expression ten times, held to the first line, to the second, and so on:
where many lines have it, that takes a twentieth of the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import re2

LINES = 10  # in one call: of 8 a name costs a tenth more; RE2 has a state for each choice of lines that have it, 1,024
PROGRAM_MAX = 128  # of RE2's steps for one expression: it follows all of them for each byte, 1.2 us as reckoned
_SET_BYTES_MAX = 1 << 20  # of memory for a set, most of it for states; chosen: so much is asked of one expression, too
_LINE = r"(?:.*$\C)"  # the dollar holds any byte to a line break: no expression may find one by its name
_PIECES = re.compile(rb"(?:.*\n){1,%d}" % LINES)


class LineSet:
    """An expression that is looked for in some lines at once.

    Args:
        compiled: It for the first line, for the second, and so on, and behind those one that is found in any text.
    """

    def __init__(self, compiled: re2.Set) -> None:
        self._compiled = compiled

    def split(self, lines: bytes) -> list[bytes]:
        """Return pieces of `LINES` lines, the last with fewer where there are no more."""
        return _PIECES.findall(lines + b"\n")

    def find(self, piece: bytes) -> Sequence[int] | None:
        """Return which lines of a piece have it, in any order, from 0 on; None where RE2 has no memory for that.

        Numbers from that of lines in the piece on mean nothing.
        """
        found: list[int] = self._compiled.Match(piece) or []
        return found if LINES in found else None


def compile_line_set(text: str) -> LineSet | None:
    """Return an expression for some lines at once; None where that would take too long, or too much memory.

    Args:
        text: An expression that asks for no more than one line has, and that RE2 takes.
    """
    options = re2.Options()
    options.log_errors, options.never_capture, options.never_nl = False, True, True
    options.max_mem = _SET_BYTES_MAX
    if re2.compile(f"(?m){text}", options).programsize > PROGRAM_MAX:
        return None
    compiled = re2.Set.MatchSet(options)
    try:
        for line in range(LINES):
            compiled.Add(f"(?m){_LINE * line}.*(?:{text})")
        compiled.Add("")
        compiled.Compile()
    except re2.error:
        return None
    return LineSet(compiled)
