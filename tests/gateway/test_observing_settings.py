from __future__ import annotations

from gateway.observing_settings import EventsSettings


def test_events_are_off_unless_asked_for_in_one_way():
    assert not EventsSettings().is_on
    assert EventsSettings(mqtt=True).is_on
    assert EventsSettings(amqp=True).is_on
