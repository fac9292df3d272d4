"""Addresses that guess: after some wrong logins, those of an address are refused for a while, longer each time.

An address is all of IPv4, and the first 64 bits of IPv6. Logins that were right before stay right meanwhile, so that
devices behind the same router come in. Nobody is refused for the name alone: else anybody could keep a user out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from ipaddress import ip_network

from gateway.address import is_loopback, is_within
from gateway.settings.penalties import PenaltySettings

LOGGER = logging.getLogger(__name__)

ADDRESSES_MAX = 16_384  # that were wrong lately, about 250 bytes each


class Record:
    """What is known of one address."""

    __slots__ = ("first_at_ms", "penalties", "refused_until_ms", "wrong_count")

    def __init__(self, now_ms: int) -> None:
        self.first_at_ms = now_ms  # of the wrong logins that count
        self.wrong_count = 0
        self.penalties = 0
        self.refused_until_ms = 0


class PenaltyBox:
    """All such addresses, as `pack_network` names them; the one that was wrong longest ago is forgotten first.

    Args:
        settings: When and how long.
    """

    def __init__(self, settings: PenaltySettings) -> None:
        self.refused_count = 0  # logins
        self.penalty_count = 0
        self.on_penalty: Callable[[str, int], None] = _nobody  # told the host, and for how many seconds
        self._records: dict[bytes, Record] = {}
        self.use(settings)

    def use(self, settings: PenaltySettings) -> None:
        """Go by other settings from now on; without any number of wrong ones nobody is refused any more."""
        self._settings = settings
        self._exempt = [ip_network(text) for text in settings.exempt]
        if not settings.wrong_max:
            self._records.clear()

    def count(self, now_ms: int) -> int:
        """Return how many addresses are refused now."""
        return sum(record.refused_until_ms > now_ms for record in self._records.values())

    def refuses(self, network: bytes, now_ms: int) -> bool:
        """Return whether logins of an address are refused now, and count one."""
        record = self._records.get(network) if self._records else None
        if record is None or record.refused_until_ms <= now_ms:
            return False
        self.refused_count += 1
        return True

    def find_left_s(self, network: bytes, now_ms: int) -> int:
        """Return for how many seconds logins of an address are refused from now on, 0: they are not."""
        record = self._records.get(network)
        return 0 if record is None else max(0, -((now_ms - record.refused_until_ms) // 1_000))

    def note_wrong(self, network: bytes, host: str, now_ms: int) -> None:
        """Note one more wrong login of an address; `host` is one of its names."""
        settings = self._settings
        if not settings.wrong_max or self._is_exempt(host):
            return
        record = self._records.pop(network, None) or self._make(now_ms)
        self._records[network] = record
        if now_ms - record.first_at_ms > settings.within_s * 1_000:
            if now_ms - record.refused_until_ms > settings.refuse_s_max * 1_000:
                record.penalties = 0
            record.first_at_ms, record.wrong_count = now_ms, 0
        record.wrong_count += 1
        if record.wrong_count >= settings.wrong_max:
            self._punish(record, host, now_ms)

    def _make(self, now_ms: int) -> Record:
        if len(self._records) >= ADDRESSES_MAX:
            del self._records[next(iter(self._records))]
        return Record(now_ms)

    def _punish(self, record: Record, host: str, now_ms: int) -> None:
        settings = self._settings
        refuse_s = min(settings.refuse_s << min(record.penalties, 20), settings.refuse_s_max)
        record.penalties += 1
        record.refused_until_ms = now_ms + refuse_s * 1_000
        record.first_at_ms, record.wrong_count = now_ms, 0
        self.penalty_count += 1
        LOGGER.warning(
            "logins of an address are refused for a while: too many wrong ones host=%s for_s=%d", host, refuse_s
        )
        self.on_penalty(host, refuse_s)

    def _is_exempt(self, host: str) -> bool:
        if not self._settings.loopback and is_loopback(f"{host}:0"):
            return True
        return is_within(host, self._exempt)


def _nobody(host: str, refuse_s: int) -> None:
    del host, refuse_s
