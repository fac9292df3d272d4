from __future__ import annotations

from gateway.auth.denials import SAID_MAX, Denials
from gateway.events import Actor, Events


def test_each_action_and_name_is_said_once_and_the_rest_is_counted_at_the_end(caplog):
    denials = Denials(Actor(Events(), "mqtt", 7, "192.0.2.7:5", "joe"))
    for _ in range(3):
        denials.note("publish", b"a/b")
    denials.note("read", "a/b")
    denials.end()
    denials.end()
    assert [record.getMessage() for record in caplog.records] == [
        "denied publish conn=7 user=joe name=a/b",
        "denied read conn=7 user=joe name=a/b",
        "denied more conn=7 user=joe count=2",
    ]


def test_flood_of_denied_names_is_a_few_lines(caplog):
    denials = Denials(Actor(Events(), "mqtt", 7, "192.0.2.7:5", "joe"))
    for number in range(10_000):
        denials.note("publish", b"x" * 60_000 + b"%d" % number if number % 2 else b"%d" % number)
    denials.end()
    assert len(caplog.records) == SAID_MAX + 1
    assert caplog.records[-1].getMessage() == f"denied more conn=7 user=joe count={10_000 - SAID_MAX}"
    assert len(caplog.text) < 10_000
