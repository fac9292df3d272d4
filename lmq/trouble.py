"""Tells of a failure that lasts, without telling of each try."""

from __future__ import annotations

import logging
import time

LOGGER = logging.getLogger(__name__)

AGAIN_FIRST_S = 5.0  # chosen: a short failure is told once
AGAIN_MAX_S = 60.0  # chosen: one line a minute of what lasts


class Troubles:
    """What a consumer tries for ever."""

    def __init__(self) -> None:
        self.sharing = Trouble("sharing out queues")
        self.saving = Trouble("saving offsets")
        self._pulling: dict[str, Trouble] = {}  # by broker

    def pulling_from(self, broker_name: str) -> Trouble:
        """Return that of all pulls from a broker."""
        return self._pulling.setdefault(broker_name, Trouble("pulling"))


class Trouble:
    """One thing that is tried for ever: logs when it begins to fail, more and more seldom again, and when it works.

    Args:
        what: What is tried, as the log says it.
    """

    def __init__(self, what: str) -> None:
        self.failures = 0  # ever
        self._what = what
        self._since_s: float | None = None  # it fails
        self._again_at_s = 0.0
        self._pause_s = 0.0

    def note_failure(self, error: Exception, where: object) -> None:
        """Note that a try failed, and where."""
        self.failures += 1
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s, self._pause_s = now_s, AGAIN_FIRST_S
        elif now_s < self._again_at_s:
            return
        else:
            self._pause_s = min(2 * self._pause_s, AGAIN_MAX_S)
        self._again_at_s = now_s + self._pause_s
        cause = str(error) or type(error).__name__
        LOGGER.warning(
            "%s fails at=%s for_s=%.0f cause=%s; it is tried again", self._what, where, now_s - self._since_s, cause
        )

    def note_success(self) -> None:
        """Note that it works."""
        if self._since_s is not None:
            LOGGER.warning("%s works again after_s=%.0f", self._what, time.monotonic() - self._since_s)
            self._since_s = None
