"""Rows of pages as text: one is written anew when something that it tells is other than when it was written.

Most of what an operator looks at stands still, and a page is asked for again each second.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

ROWS_MAX = 2_000  # of some hundred bytes to 1.3 KB; the one that was written longest ago goes


class WrittenRows:
    """The rows that were on pages of late."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, tuple[object, bytes]] = {}

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._rows)

    def get(self, key: Hashable, figures: object, write: Callable[[], bytes]) -> bytes:
        """Return a row.

        Args:
            key: What it is known by.
            figures: All that it tells and that may change; equal ones make the same row.
            write: Returns it as text.
        """
        known = self._rows.get(key)
        if known is not None and known[0] == figures:
            return known[1]
        text = write()
        self._rows.pop(key, None)
        self._rows[key] = figures, text
        if len(self._rows) > ROWS_MAX:
            del self._rows[next(iter(self._rows))]
        return text

    def clear(self) -> None:
        """Forget all."""
        self._rows = {}
