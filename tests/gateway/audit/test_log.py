from __future__ import annotations

import json

import pytest

from gateway.audit.log import AuditLog, make_line
from gateway.events import Actor, Event, Events, Kind
from gateway.runtime.loop import Clock
from gateway.settings.audit import AuditSettings
from gateway.settings.models import SettingsError


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def actor(events):
    return Actor(events, "amqp", 7, "192.0.2.7:5", "ann")


@pytest.fixture
def log(events):
    log = AuditLog(events, Clock())
    yield log
    _end(log)


def _end(log):
    writer = log.end()
    if writer is not None:
        writer.join()


def _lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_line_has_moment_event_and_who_before_what_it_was_done_to(actor):
    event = Event(Kind.QUEUE_DELETED, actor, {"vhost": "/", "name": "q\n\u2028"})
    line = make_line(1_790_000_000_123, event)
    assert line.count(b"\n") == 1
    assert line.startswith(b'{"at": "2026-09-21T')
    told = json.loads(line)
    assert told.pop("at").endswith(".123Z")
    assert told == {
        "event": "queue.deleted",
        "user": "ann",
        "door": "amqp",
        "conn": 7,
        "peer": "192.0.2.7:5",
        "vhost": "/",
        "name": "q\n\u2028",
    }


def test_events_are_written_but_those_that_are_left_out(log, actor, events, tmp_path):
    path = tmp_path / "audit.jsonl"
    log.use(AuditSettings(file=path))
    actor.tell(Kind.CONNECTION_CREATED)
    actor.tell(Kind.QUEUE_CREATED, name="q")
    _end(log)
    actor.tell(Kind.QUEUE_CREATED, name="after")
    assert [line["name"] for line in _lines(path)] == ["q"]
    assert not events.is_heard
    assert (log.counts.written, log.counts.lost) == (1, 0)
    assert path.stat().st_mode & 0o077 == 0


def test_file_that_was_moved_is_made_anew_when_settings_are_read_again(log, actor, tmp_path):
    path = tmp_path / "audit.jsonl"
    log.use(AuditSettings(file=path))
    actor.tell(Kind.QUEUE_CREATED, name="first")
    log.end().join()
    path.rename(tmp_path / "moved")
    log.use(AuditSettings(file=path))
    actor.tell(Kind.QUEUE_CREATED, name="second")
    _end(log)
    assert [line["name"] for line in _lines(path)] == ["second"]
    assert [line["name"] for line in _lines(tmp_path / "moved")] == ["first"]


def test_without_a_file_nobody_listens(log, events):
    log.use(AuditSettings())
    assert not events.is_heard


def test_file_that_cannot_be_written_is_a_wrong_setting(log, events, tmp_path):
    settings = AuditSettings(file=tmp_path / "none" / "audit.jsonl")
    with pytest.raises(SettingsError, match="cannot write"):
        log.check(settings)
    with pytest.raises(SettingsError, match="cannot write"):
        log.use(settings)
    assert not events.is_heard
