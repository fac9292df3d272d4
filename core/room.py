"""Whether the disk has room for what publishers bring: doors look once a batch, and hold publishers back while not."""

from __future__ import annotations

from collections.abc import Callable

# Publishers go on when there is a sixteenth more than the least, so that they do not stop again at once.
MARGIN_SHIFT = 4


class Room:
    """The disk's free room against the least that is wanted.

    `is_low` is for the doors: a publisher is held back until the room is enough again. Stored data is never
    dropped for room, and readers go on.

    Args:
        free_bytes_min: With less than that the room is low; 0: only where no further segment can be made.
    """

    __slots__ = ("_watchers", "free_bytes", "free_bytes_min", "is_low")

    def __init__(self, free_bytes_min: int) -> None:
        self.free_bytes_min = free_bytes_min
        self.free_bytes = 0  # as last seen; may be set by another thread
        self.is_low = False
        self._watchers: list[tuple[Callable[[], None], Callable[[int], None]]] = []

    def watch(self, on_low: Callable[[], None], on_enough: Callable[[int], None]) -> None:
        """Call `on_low()` when the room gets low, and `on_enough(now_ms)` when publishers may go on."""
        self._watchers.append((on_low, on_enough))

    def is_enough(self, free_bytes: int, *, is_full: bool) -> bool:
        """Return whether publishers may go on with this much; once the room is low that takes more. Any thread may ask.

        Args:
            free_bytes: What the file system has to give.
            is_full: It has refused the log's next segment, whatever it says of its free room.
        """
        wanted = self.free_bytes_min
        if self.is_low:
            wanted += wanted >> MARGIN_SHIFT
        return not is_full and free_bytes >= wanted

    def note(self, free_bytes: int, *, is_full: bool, now_ms: int) -> bool:
        """Take note of what the disk has now, and tell the watcher if that changes `is_low`; return whether it did."""
        self.free_bytes = free_bytes
        is_low = not self.is_enough(free_bytes, is_full=is_full)
        if is_low == self.is_low:
            return False
        self.is_low = is_low
        for on_low, on_enough in self._watchers:
            if is_low:
                on_low()
            else:
                on_enough(now_ms)
        return True
