from __future__ import annotations

from gateway.settings.observing import EventsSettings, TelemetrySettings


def test_events_are_off_unless_asked_for_in_one_way():
    assert not EventsSettings().is_on
    assert EventsSettings(mqtt=True).is_on
    assert EventsSettings(amqp=True).is_on


def test_telemetry_is_off_unless_asked_for():
    assert not TelemetrySettings().is_on
    assert TelemetrySettings(metrics=True).is_on
    assert TelemetrySettings(traces=True).is_on
