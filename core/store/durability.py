"""What waits for the disk, and for which part of it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from core.engine import Outcome
from core.errors import LmqError, StoreClosedError
from core.store.message_store import MessageStore

LOGGER = logging.getLogger(__name__)

LAST_ROUNDS_MAX = 16  # at a stop: a callback that is told may store more, which has to be told of, too
ALL = 2**62  # more than there are


def _nothing() -> None:
    return


class Durability:
    """Calls back when what was written is safe.

    The runtime sets `request_flush`, called when a caller waits. Upon that it calls `begin_flush`, carries out a flush
    of the store, in part on a thread of its own, and calls `end_flush`, then `tell_more` until all were told.

    Args:
        store: What is flushed.
        is_sync: Whether `when_stored` and `when_durable` wait for a flush; `when_kept` does in any case.
    """

    def __init__(self, store: MessageStore, *, is_sync: bool) -> None:
        self.is_failed = False
        self.request_flush: Callable[[], None] = _nothing
        self._store = store
        self.is_sync = is_sync
        self._waiting: list[Outcome] = []
        self._covered: list[Outcome] = []
        self._is_flushing = False
        self._nobody_waits = False  # as the flush ended
        self._wants_all = False
        self._company = 0  # that had to wait for the last flush of tables, or came while it ran
        self._has_tables = False  # the flush under way

    def when_stored(self, until: int, then: Outcome) -> None:
        """Call back when the log until `until` is as safe as the settings say.

        Without `is_sync` that is at once: what is written to a mapped file survives a killed process. With it, tables
        that have changed are kept too. Callbacks come in the order of the calls, also where one is met at once. After a
        failed flush all come with an error.
        """
        self._call_when_safe(then, self.is_sync and (not self._store.is_flushed(until) or self._store.needs_commit()))

    def when_durable(self, then: Outcome) -> None:
        """Call back when all messages and acknowledgements so far are as safe as the settings say.

        As `when_stored`, which leaves the acknowledgements of consumers to a later flush: what nobody is answered for
        is delivered again after a power cut.
        """
        if self.is_sync:
            self.when_kept(then)
        else:
            self._call_at_once(then)

    def when_kept(self, then: Outcome) -> None:
        """Call back when all changes of tables so far survive a killed process too; with `is_sync`, a power cut.

        In order, as `when_stored`. Retained messages follow from the log: nobody need wait for their table.
        """
        is_at_risk = self._is_at_risk()
        self._wants_all |= is_at_risk
        self._call_when_safe(then, is_at_risk)

    def keep_all(self) -> None:
        """Have everything that was written so far forced to disk, though nobody waits for it."""
        if self._store.needs_flush() and not self.is_failed:
            self._wants_all = True
            self.request_flush()

    def _call_when_safe(self, then: Outcome, is_at_risk: bool) -> None:  # noqa: FBT001  # of this class
        if self.is_failed or (not self._waiting and not self._covered and not is_at_risk):
            self._call_at_once(then)
            return
        self._waiting.append(then)
        if not self._is_flushing:
            self.request_flush()

    def _call_at_once(self, then: Outcome) -> None:
        then(StoreClosedError("the disk refused a sync; nothing is promised any more") if self.is_failed else None)

    def _is_at_risk(self) -> bool:
        return self._store.needs_flush() if self.is_sync else self._store.needs_commit()

    def begin_flush(self) -> bool:
        """Fix what the flush that is about to start covers; followed by `end_flush` in any case.

        Returns:
            Whether that is everything, and not the log alone.
        """
        self._is_flushing = True
        self._has_tables = self._store.needs_commit()
        wants_all, self._wants_all = self._wants_all or self._has_tables, False
        if wants_all:
            self._store.note_covered()
        self._covered, self._waiting = self._waiting, []
        return wants_all

    def wants_company(self) -> bool:
        """Return whether others are likely to ask within moments for what the next flush gives those that wait now.

        A flush of tables answered several clients, which come again together; a change that begins one by itself would
        have all others wait for two.
        """
        return self._company > 1 and len(self._waiting) < self._company and self._store.needs_commit()

    def end_flush(self, error: LmqError | None, count_max: int = ALL) -> bool:
        """Tell those that waited that the flush is done; an error goes to all that wait, and publishing ends.

        Returns:
            Whether there are more than `count_max`, and `tell_more` is to be called.
        """
        if error is not None:
            self._is_flushing = False
            self.is_failed = True
            self._covered += self._waiting
            self._waiting = []
            self._call_covered(error, ALL)
            return False
        self._nobody_waits = not self._waiting
        if self._has_tables:
            self._company = len(self._covered) + len(self._waiting)
        return self.tell_more(count_max)

    def tell_more(self, count_max: int = ALL) -> bool:
        """Go on with what `end_flush` began; the next flush begins when all were told."""
        if self.is_failed:
            return False
        self._call_covered(None, count_max)
        while not self._covered and self._nobody_waits and self._waiting and not self._is_at_risk():
            self._covered, self._waiting = self._waiting, []  # asked by those that were told
            self._call_covered(None, count_max)
        if self._covered:
            return True
        self._is_flushing = False
        if self._waiting:
            self.request_flush()
        else:
            self._store.touch_ahead()  # the sync protected what it wrote: the next message would have to wait for that
        return False

    def end(self) -> None:
        """Flush here and now, and tell all that wait: what they do upon that is kept by the store's close.

        For a stop, when no other flush is under way or follows.
        """
        for _ in range(LAST_ROUNDS_MAX):
            if self.is_failed or not (self._waiting or self._covered):
                return
            self._is_flushing = True
            self._covered, self._waiting = [*self._covered, *self._waiting], []
            error: LmqError | None = None
            try:
                self._store.flush()
            except LmqError as caught:
                error = caught
            self.is_failed = error is not None
            self._call_covered(error, ALL)
            self._is_flushing = False

    def _call_covered(self, error: LmqError | None, count_max: int) -> None:
        """Tell the first of those that the flush covered; what is asked meanwhile comes after them."""
        covered = self._covered
        count = min(count_max, len(covered))
        for i in range(count):
            try:
                covered[i](error)
            except Exception:
                LOGGER.exception("a callback of a flush failed")
        self._covered = covered[count:]
