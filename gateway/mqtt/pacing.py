"""How fast one client may publish and be sent messages: as its address says, or the door; some rates are shared."""

from __future__ import annotations

from collections.abc import Callable

from gateway.door import ClientLimits
from gateway.pacing import Pacing, UserRates, make_pacing
from gateway.settings.models import MqttSettings


def make_client_pacing(
    settings: MqttSettings, own: ClientLimits, of_user: UserRates | None, now_ms: int, *others: UserRates
) -> Pacing | None:
    """Return the pace at which a new connection may publish, None where there is no limit.

    Its address may have rates of its own.
    """
    messages_rate = own.messages_rate or settings.messages_rate
    return make_pacing(messages_rate, own.bytes_rate or settings.bytes_rate, of_user, now_ms, *others)


class Outflow:
    """The pace at which a session is sent messages: messages beyond it wait where they are.

    Args:
        pacing: Its rates.
        on_pause: Called when nothing more may be sent until `until_ms`.
    """

    __slots__ = ("_is_waited_for", "_on_pause", "_pacing")

    def __init__(self, pacing: Pacing, on_pause: Callable[[], None]) -> None:
        self._pacing = pacing
        self._on_pause = on_pause
        self._is_waited_for = False  # a pause held something back, and its end was not told yet

    @property
    def until_ms(self) -> int | None:
        """When what a pause held back may go on, None where there was none since `go_on`."""
        return self._pacing.until_ms if self._is_waited_for else None

    def room(self, now_ms: int) -> int:
        """Return how many messages may be sent now, 0 while a pause lasts."""
        pacing = self._pacing
        if pacing.is_paused and now_ms < pacing.until_ms:
            return 0
        self.note(0, 0, now_ms)  # others may have taken what there was
        return 0 if pacing.is_paused else pacing.allow(now_ms)

    def room_bytes(self, now_ms: int) -> int:
        """Return how many bytes of bodies may be sent now, at least one."""
        return self._pacing.allow_bytes(now_ms)

    def note(self, count: int, size: int, now_ms: int) -> None:
        """Take note of messages that were sent, and of the bytes of their bodies."""
        if self._pacing.note(count, size, now_ms):
            self._is_waited_for = True
            self._on_pause()

    def go_on(self) -> None:
        """End a pause; the caller wakes what it held back."""
        self._pacing.is_paused = self._is_waited_for = False


def make_outflow(
    settings: MqttSettings,
    own: ClientLimits,
    of_user: UserRates | None,
    now_ms: int,
    on_pause: Callable[[], None],
    *others: UserRates,
) -> Outflow | None:
    """Return the pace at which a new connection is sent messages, None where there is no limit."""
    messages_rate = own.messages_out_rate or settings.messages_out_rate
    pacing = make_pacing(messages_rate, own.bytes_out_rate or settings.bytes_out_rate, of_user, now_ms, *others)
    return None if pacing is None else Outflow(pacing, on_pause)
