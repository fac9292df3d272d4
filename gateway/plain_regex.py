r"""Regular expressions so plain that Python's own engine may look for them, in names of which many have them.

RE2 is a library whose call costs some microseconds, and Python's engine takes 0.2 us for a name: with a million names
that is 2 s or 0.2 s. But Python's takes any time for hostile expressions. So only those are left to it that are a row
of characters and classes with one quantifier at most and one choice of words, and that mean the same to both:
`[13579]$`, `^orders\..*-dlq$`. Two choices, or one that is repeated, would double the ways to look with each character.
"""

from __future__ import annotations

import re
from collections.abc import Callable

PLAIN_MAX = 64  # characters of an expression: each may be compared at each place of a name
SLIDING_MAX = 16  # of one that may begin anywhere and has a quantifier: also with each place behind that one
CHOICES_MAX = 1  # in parentheses: each more is looked at for every way through those before; none where it slides
NAME_MAX = 255  # characters of a name: the two together are 0.5 million comparisons, 1 to 2 ms
_WORD = r"(?:[A-Za-z0-9_ :/@,;=<>~#%&!-]|\\[!-/:-@\[-^`{-~])"  # means itself
_ITEMS = r"(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9_.])+"
_ONE = rf"(?:{_WORD}|\.|\\[dw]|\[\^?{_ITEMS}\])"
_ATOM = rf"(?:{_ONE}|\({_WORD}*(?:\|{_WORD}*)*\))"
_PLAIN = re.compile(rf"\^?{_ATOM}*(?P<quantified>{_ONE}[*+?]{_ATOM}*)?\$?")


def compile_plain(text: str) -> Callable[[str], object] | None:
    """Return what says whether an expression is found in a name of at most `NAME_MAX`; None where it is not plain.

    Args:
        text: An expression that RE2 takes.
    """
    text = _strip(text)
    found = _PLAIN.fullmatch(text) if len(text) <= PLAIN_MAX else None
    is_held = text.startswith("^")
    if found is None:
        return None
    is_sliding = found["quantified"] is not None and not is_held
    compiled = re.compile(text[1:] if is_held else text, re.ASCII)
    if (is_sliding and len(text) > SLIDING_MAX) or compiled.groups > (0 if is_sliding else CHOICES_MAX):
        return None
    return compiled.match if is_held else compiled.search


def _strip(text: str) -> str:
    """Return an expression without what is found at the start or the end of any name: `.*`."""
    for begin in ("^.*", ".*"):
        if text.startswith(begin):
            text = text[len(begin) :]
            break
    for end in (".*$", ".*"):
        if text.endswith(end):
            return text[: -len(end)]
    return text
