"""A basic.get whose message is on its way: it is tried again in the next turn."""

from __future__ import annotations

from typing import Protocol

from pamqp.commands import Basic

from core.lmq.waiters import Reader
from gateway.amqp.channel import Channel


class Getter(Protocol):
    """The connection that asked."""

    def get_again(self, channel: Channel, method: Basic.Get, now_ms: int) -> None:
        """Answer, or ask for another try."""


class LateGet(Reader):
    """One such get."""

    def __init__(self, getter: Getter, channel: Channel, method: Basic.Get) -> None:
        self._getter = getter
        self._channel = channel
        self._method = method

    def on_ready(self, now_ms: int) -> bool:
        """Try again."""
        self._getter.get_again(self._channel, self._method, now_ms)
        return False
