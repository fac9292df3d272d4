"""The form that the rows of a durable table have, and the way to it from older ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

UNSAID = 0  # the version of rows from before rows said one

Upgrade = Callable[[bytes], bytes]
"""From a row's value in one version to that in the next."""


class RowFormat(NamedTuple):
    """What version the rows of a table have, and how those of the versions before are brought to the next one.

    A version without an upgrade has the same values as the next. A row that says a later version is refused.
    """

    version: int = 1
    upgrades: Mapping[int, Upgrade] = {}

    def upgrade(self, version: int, value: bytes) -> bytes:
        """Return the value, which is that of a row of `version`, as this version has it."""
        for step in range(version, self.version):
            if step in self.upgrades:
                value = self.upgrades[step](value)
        return value


FIRST = RowFormat()
