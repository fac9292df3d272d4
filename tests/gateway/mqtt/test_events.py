from __future__ import annotations

from gateway.mqtt.events import Run


def test_runs_are_told_apart_from_packets_by_identity():
    assert Run.PUBLISHES is not Run.ACKS
    assert Run(1) is Run.PUBLISHES
