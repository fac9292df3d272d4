from __future__ import annotations

import time

import pytest
from prometheus_client.core import GaugeMetricFamily
from pydantic import ValidationError

from gateway.settings.observing import TelemetrySettings
from gateway.telemetry.otlp import STOP_S, OtlpSender
from tests.support.telemetry import OtlpReceiver


def test_nothing_is_sent_that_is_not_asked_for():
    with OtlpReceiver() as receiver:
        sender = OtlpSender(TelemetrySettings(metrics=True, endpoint=receiver.endpoint + "/"))
        assert sender.make_tracer(1.0) is None
        sender.send_metrics([GaugeMetricFamily("lmq_up", "", 1)])
        with receiver.arrived:
            assert receiver.arrived.wait_for(lambda: receiver.metrics, 10)
        sender.stop()
        assert receiver.spans == []


def test_a_stop_waits_for_a_moment_only():
    sender = OtlpSender(TelemetrySettings(traces=True, metrics=True, endpoint="http://127.0.0.1:9"))
    sender.make_tracer(1.0)._spans.start_span("a").end()
    sender.send_metrics([GaugeMetricFamily("lmq_up", "", 1)])
    began = time.monotonic()
    sender.stop()
    assert time.monotonic() - began < STOP_S + 1


def test_an_endpoint_is_a_url():
    with pytest.raises(ValidationError, match="endpoint"):
        TelemetrySettings(endpoint="collector:4318")
