"""Who waits for the disk, and what for."""

from __future__ import annotations

import logging
from collections.abc import Callable

from core.errors import LmqError
from core.store.message_store import MessageStore

LOGGER = logging.getLogger(__name__)


def _nothing() -> None:
    return


class Durability:
    """Calls back when what was written is safe.

    The runtime sets `request_flush`, called when somebody waits. Upon that it calls `begin_flush`, carries out a flush
    of the store, in part on a thread of its own, and calls `end_flush`.

    Args:
        store: What is flushed.
        is_sync: Whether `when_stored` and `when_durable` wait for a flush; `when_kept` does in any case.
    """

    def __init__(self, store: MessageStore, *, is_sync: bool) -> None:
        self.is_failed = False
        self.request_flush: Callable[[], None] = _nothing
        self._store = store
        self._is_sync = is_sync
        self._waiting: list[Callable[[], None]] = []
        self._covered: list[Callable[[], None]] = []
        self._is_flushing = False
        self._wants_all = False

    def when_stored(self, callback: Callable[[], None]) -> None:
        """Call back when all messages published so far are as safe as the settings say.

        Without `is_sync` that is at once: what is written to a mapped file survives a killed process. With it, tables
        that have changed are kept too. Callbacks come in the order of the calls, also where one is met at once. After a
        failed flush they never come.
        """
        if self._is_sync:
            self._call_when_safe(callback, self._store.needs_log_flush() or self._store.needs_commit())
        elif not self.is_failed:
            callback()

    def when_durable(self, callback: Callable[[], None]) -> None:
        """Call back when all messages and acknowledgements so far are as safe as the settings say.

        As `when_stored`, which leaves the acknowledgements of consumers to a later flush: what nobody is answered for
        is delivered again after a power cut.
        """
        if self._is_sync:
            self.when_kept(callback)
        elif not self.is_failed:
            callback()

    def when_kept(self, callback: Callable[[], None]) -> None:
        """Call back when all changes of tables so far survive a killed process too; with `is_sync`, a power cut.

        In order, as `when_stored`. Retained messages follow from the log: nobody need wait for their table.
        """
        is_at_risk = self._is_at_risk()
        self._wants_all |= is_at_risk
        self._call_when_safe(callback, is_at_risk)

    def keep_all(self) -> None:
        """Have everything that was written so far forced to disk, though nobody waits for it."""
        if self._store.needs_flush() and not self.is_failed:
            self._wants_all = True
            self.request_flush()

    def _call_when_safe(self, callback: Callable[[], None], is_at_risk: bool) -> None:  # noqa: FBT001  # of this class
        if self.is_failed:
            return
        if not self._waiting and not self._covered and not is_at_risk:
            callback()
            return
        self._waiting.append(callback)
        if not self._is_flushing:
            self.request_flush()

    def _is_at_risk(self) -> bool:
        return self._store.needs_flush() if self._is_sync else self._store.needs_commit()

    def begin_flush(self) -> bool:
        """Fix what the flush that is about to start covers; followed by `end_flush` in any case.

        Returns:
            Whether that is everything, and not the log alone.
        """
        self._is_flushing = True
        wants_all, self._wants_all = self._wants_all or self._store.needs_commit(), False
        if wants_all:
            self._store.note_covered()
        self._covered, self._waiting = self._waiting, []
        return wants_all

    def end_flush(self, error: LmqError | None) -> None:
        """Tell those who waited that the flush is done; after an error nobody is told, and publishing ends."""
        if error is not None:
            self._is_flushing = False
            self.is_failed = True
            self._covered = []
            self._waiting.clear()
            return
        nobody_waits = not self._waiting
        self._call_covered()
        while nobody_waits and self._waiting and not self._is_at_risk():  # asked by those who were just told
            self._covered, self._waiting = self._waiting, []
            self._call_covered()
        self._is_flushing = False
        if self._waiting:
            self.request_flush()
        else:
            self._store.touch_ahead()  # the sync protected what it wrote: the next message would have to wait for that

    def _call_covered(self) -> None:
        """Tell those whom the flush covered; who asks meanwhile comes after them."""
        for callback in self._covered:
            try:
                callback()
            except Exception:
                LOGGER.exception("a callback of a flush failed")
        self._covered = []
