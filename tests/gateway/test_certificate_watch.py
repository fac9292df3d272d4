from __future__ import annotations

import asyncio
import logging

import pytest

from gateway.carriage import Carriage
from gateway.certificate_watch import DAY_S, CertificateWatch
from gateway.door import Listen
from gateway.net.streams.certificate_file import WARN_S
from gateway.runtime.loop import Clock
from tests.support.certificates import issue
from tests.support.gateway import ANY_PORT
from tests.support.listening import tls

pytestmark = pytest.mark.asyncio
NOW_MS = Clock().now_ms()


@pytest.fixture
def carriages(tmp_path):
    pairs = [issue(tmp_path / name) for name in ("first", "second")]
    return [Carriage(Listen("mqtt", ANY_PORT, tls(certificate=pair[0], key=pair[1]))) for pair in pairs]


@pytest.fixture
def watch(carriages):
    return CertificateWatch(carriages)


async def look(watch, times=1, now_ms=NOW_MS):
    for _ in range(times):
        watch.look(now_ms)
        while watch._task is not None:
            await asyncio.sleep(0)


async def test_files_that_change_are_read_once_they_stay_the_same(watch, carriages, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    before = [carriage.certificates for carriage in carriages]
    await look(watch, 3)
    issue(tmp_path / "second", "new.test")
    await look(watch)
    assert [carriage.certificates for carriage in carriages] == before
    issue(tmp_path / "second", "newer.test")  # it goes on changing
    await look(watch)
    assert [carriage.certificates for carriage in carriages] == before
    await look(watch)
    assert carriages[0].certificates == before[0]
    assert carriages[1].certificates[0].names == ("newer.test",)
    assert "certificates were read again listener=mqtts address=127.0.0.1:0 names=newer.test" in caplog.text
    await look(watch, 3)
    assert caplog.text.count("read again") == 1


async def test_a_bad_file_keeps_what_there_is_and_is_told_once(watch, carriages, tmp_path, caplog):
    before = carriages[0].certificates
    (tmp_path / "first" / "key.pem").write_text("nothing")
    await look(watch, 5)
    assert carriages[0].certificates == before
    assert caplog.text.count("certificates cannot be read again, those in use stay: tls of mqtt on") == 1
    (tmp_path / "first" / "key.pem").unlink()
    await look(watch, 3)
    assert caplog.text.count("cannot be read again") == 2
    issue(tmp_path / "first", "mended.test")
    await look(watch, 2)
    assert carriages[0].certificates[0].names == ("mended.test",)


async def test_a_certificate_that_ends_soon_is_told_once_a_day(carriages, caplog):
    watch = CertificateWatch(carriages[:1])
    ends_ms = carriages[0].certificates[0].expires_at_s * 1_000
    await look(watch, now_ms=ends_ms - (WARN_S + 60) * 1_000)
    assert not caplog.records
    for now_ms in (ends_ms - WARN_S * 1_000, ends_ms - WARN_S * 1_000 + 60_000, ends_ms - (WARN_S - DAY_S) * 1_000):
        await look(watch, now_ms=now_ms)
    assert [record.getMessage().split()[-1] for record in caplog.records] == ["days_left=14", "days_left=13"]
    assert "a certificate expires soon listener=mqtts address=127.0.0.1:0 file=" in caplog.text
    await look(watch, now_ms=ends_ms + 1_000)
    assert "a certificate has expired" in caplog.text


async def test_the_end_of_a_certificate_is_told_at_once_and_then_once_a_day(carriages, caplog):
    watch = CertificateWatch(carriages[:1])
    ends_ms = carriages[0].certificates[0].expires_at_s * 1_000
    for now_ms in (ends_ms - 60_000, ends_ms - 30_000, ends_ms, ends_ms + 60_000, ends_ms + DAY_S * 1_000):
        await look(watch, now_ms=now_ms)
    told = [record.getMessage().split(" listener=")[0] for record in caplog.records]
    expired = "a certificate has expired, so clients refuse it"
    assert told == ["a certificate expires soon", expired, expired]


async def test_a_look_that_takes_long_is_not_begun_again(watch):
    watch.look(NOW_MS)
    first = watch._task
    watch.look(NOW_MS)
    assert watch._task is first
    watch.stop()
    await look(watch)


async def test_nothing_is_looked_at_without_tls():
    watch = CertificateWatch([Carriage(Listen("mqtt", ANY_PORT))])
    watch.look(NOW_MS)
    assert watch._task is None
