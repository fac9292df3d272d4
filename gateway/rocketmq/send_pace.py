"""How fast one connection may send: what comes faster is refused as official brokers refuse while they are busy.

Nothing is held back: pulls and heartbeats come by the same connection.

Source: docs/protocols/rocketmq.md, "Rates".
"""

from __future__ import annotations

from gateway.pacing import Pacing
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.send_run import SendRun
from lmq.remoting.response_codes import ResponseCode

TOO_FAST = "[REJECTREQUEST]system busy, start flow control for a while: too many messages or bytes a second"


class SendPace:
    """The pace of one connection.

    Args:
        pacing: Its rates.
    """

    __slots__ = ("_pacing",)

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing

    def cut(self, run: SendRun, now_ms: int) -> bool:
        """Leave of a run as many sends as may come now, and count them; False: none may, and the run stays whole."""
        if self._is_over(now_ms):
            return False
        run.cut(min(run.count, self._pacing.allow(now_ms)))
        batch = run.batch
        self._pacing.note(run.count, sum(batch.body_end[i] - batch.body_start[i] for i in range(run.count)), now_ms)
        return True

    def check(self, now_ms: int) -> None:
        """See whether a send may come now.

        Raises:
            CommandRefusedError: Not yet.
        """
        if self._is_over(now_ms):
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, TOO_FAST)

    def note(self, count: int, size: int, now_ms: int) -> None:
        """Count messages that came, of so many bytes together."""
        self._pacing.note(count, size, now_ms)

    def _is_over(self, now_ms: int) -> bool:
        return self._pacing.is_paused and now_ms < self._pacing.until_ms
