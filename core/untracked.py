"""Objects that the collector of cycles need not look at: there are very many of them, and none leads back to itself.

Compiled modules take the inline C form of the same name from `untracked.pxd`. Use as `from core import untracked` and
`untracked.untrack(self)`, as the last thing in `__init__`.

Source: docs/decisions/0010-the-collector.md.
"""

from __future__ import annotations


def untrack(thing: object) -> None:
    """Have the collector leave an object alone from now on; here it goes on to look at it, which is only slower."""
    del thing
