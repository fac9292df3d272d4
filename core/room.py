"""Whether there is room for what publishers bring, on the disk and in memory: doors hold publishers back while not."""

from __future__ import annotations

from collections.abc import Callable

# Publishers go on when there is a sixteenth more than the least, so that they do not stop again at once.
MARGIN_SHIFT = 4
DISK_LOW, MEMORY_LOW = "the disk is low on room", "memory is low"  # as everybody is told


class Room:
    """The disk's free room against the least that is wanted.

    `is_low` is for the doors, which look once a batch: a publisher is held back until the room is enough again, on the
    disk and in memory. Stored data is never dropped for room, and readers go on.

    Args:
        free_bytes_min: With less than that the room is low; 0: only where no further segment can be made.
    """

    __slots__ = ("_watchers", "free_bytes", "free_bytes_min", "is_disk_low", "is_low", "is_memory_low")

    def __init__(self, free_bytes_min: int) -> None:
        self.free_bytes_min = free_bytes_min
        self.free_bytes = 0  # as last seen; may be set by another thread
        self.is_low = False
        self.is_disk_low = False
        self.is_memory_low = False
        self._watchers: list[tuple[Callable[[], None], Callable[[int], None]]] = []

    def watch(self, on_low: Callable[[], None], on_enough: Callable[[int], None]) -> None:
        """Call `on_low()` when the room gets low, and `on_enough(now_ms)` when publishers may go on."""
        self._watchers.append((on_low, on_enough))

    @property
    def lack(self) -> str:
        """What there is too little of, in words; empty where nothing is low."""
        if self.is_disk_low:
            return DISK_LOW
        return MEMORY_LOW if self.is_memory_low else ""

    def is_enough(self, free_bytes: int, *, is_full: bool) -> bool:
        """Return whether publishers may go on with this much; once the room is low that takes more. Any thread may ask.

        Args:
            free_bytes: What the file system has to give.
            is_full: It has refused the log's next segment, whatever it says of its free room.
        """
        wanted = self.free_bytes_min
        if self.is_disk_low:
            wanted += wanted >> MARGIN_SHIFT
        return not is_full and free_bytes >= wanted

    def note(self, free_bytes: int, *, is_full: bool, now_ms: int) -> bool:
        """Take note of what the disk has now; return whether that is low now and was not, or the other way."""
        self.free_bytes = free_bytes
        is_low = not self.is_enough(free_bytes, is_full=is_full)
        if is_low == self.is_disk_low:
            return False
        self.is_disk_low = is_low
        self._tell(now_ms)
        return True

    def note_memory(self, *, is_low: bool, now_ms: int) -> None:
        """Take note of whether the memory is low."""
        self.is_memory_low = is_low
        self._tell(now_ms)

    def _tell(self, now_ms: int) -> None:
        """Tell the watchers if `is_low` changes."""
        is_low = self.is_disk_low or self.is_memory_low
        if is_low == self.is_low:
            return
        self.is_low = is_low
        for on_low, on_enough in self._watchers:
            if is_low:
                on_low()
            else:
                on_enough(now_ms)
