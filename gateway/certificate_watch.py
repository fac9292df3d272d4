"""Looks after the files of certificates: reads them again when they change, and says before one expires.

Source: docs/decisions/0052-certificates.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from gateway.carriage import Carriage, Stamp, told_name
from gateway.net.streams.certificate_file import Certificate
from gateway.settings.models import SettingsError

LOGGER = logging.getLogger(__name__)

LOOK_INTERVAL_MS = 3_000  # a new certificate is in use after two looks, some 6 s; a look costs little
DAY_S = 86_400


class CertificateWatch:
    """Looks at the files of addresses with TLS each few seconds, beside the loop.

    Files that changed are read once they have stayed the same for two looks, so that a key is not read beside the
    certificate before it. Where one cannot be used, the address keeps what it has.

    Args:
        carriages: The addresses, which may grow.
    """

    def __init__(self, carriages: Sequence[Carriage]) -> None:
        self._carriages = carriages
        self._task: asyncio.Task[None] | None = None
        self._changing: dict[Carriage, tuple[Stamp, ...]] = {}  # as they were stamped at the last look
        self._refused: dict[
            Carriage, tuple[Stamp, ...]
        ] = {}  # of files that could not be used: those are not tried again
        self._warned_at_s: dict[Certificate, int] = {}

    def look(self, now_ms: int) -> None:
        """Begin a look, unless one is under way: a file system may be slow."""
        if self._task is None and any(carriage.certificates for carriage in self._carriages):
            self._task = asyncio.get_running_loop().create_task(self._look(now_ms // 1_000), name="certificates")
            self._task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            LOGGER.error("looking at certificates failed", exc_info=task.exception())

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _look(self, now_s: int) -> None:
        for carriage in list(self._carriages):
            if carriage.certificates:
                await self._look_at(carriage)
                self._warn(carriage, now_s)

    async def _look_at(self, carriage: Carriage) -> None:
        """Read the files of one address again, where they have changed since the last read."""
        stamps = await asyncio.to_thread(carriage.look)
        if stamps in {carriage.stamps, self._refused.get(carriage)}:
            self._changing.pop(carriage, None)
            return
        if self._changing.get(carriage) != stamps:
            self._changing[carriage] = stamps
            return
        listen = carriage.listen
        del self._changing[carriage]
        try:
            reading = await asyncio.to_thread(carriage.read)
        except SettingsError as error:
            self._refused[carriage] = stamps
            LOGGER.error("certificates cannot be read again, those in use stay: %s", error)  # noqa: TRY400 - one line
            return
        self._refused.pop(carriage, None)
        carriage.use(reading)
        names = ",".join(name for certificate in carriage.certificates for name in certificate.names)
        LOGGER.info(
            "certificates were read again listener=%s address=%s names=%s", told_name(listen), listen.address, names
        )

    def _warn(self, carriage: Carriage, now_s: int) -> None:
        """Say once a day that a certificate is about to expire, or has."""
        for certificate in carriage.certificates:
            left_s = certificate.expires_at_s - now_s
            said_at_s = self._warned_at_s.get(certificate, 0)
            ended_since = said_at_s < certificate.expires_at_s <= now_s  # told at once, whatever was told that day
            if not certificate.ends_soon(now_s) or (now_s < said_at_s + DAY_S and not ended_since):
                continue
            self._warned_at_s[certificate] = now_s
            LOGGER.warning(
                "%s listener=%s address=%s file=%s names=%s days_left=%d",
                "a certificate expires soon" if left_s > 0 else "a certificate has expired, so clients refuse it",
                told_name(carriage.listen),
                carriage.listen.address,
                certificate.path,
                ",".join(certificate.names),
                left_s // DAY_S,
            )
