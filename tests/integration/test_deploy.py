"""What is in deploy/ names metrics that a live gateway has, and its tools' own checkers take it."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict_families

from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish, subscribe
from tests.support.sources import ROOT

ALERTS = ROOT / "deploy/alerts.yml"
DASHBOARD = ROOT / "deploy/grafana-dashboard.json"
NAME = re.compile(r"\b(?:lmq|process)_[a-z_]+")
OPEN_METRICS = {"accept": "application/openmetrics-text; version=1.0.0"}


def _asked():
    """Return each query of the rules and of the dashboard."""
    rules = re.findall(r"expr: (.*)", ALERTS.read_text())
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [*rules, *(target["expr"] for panel in panels for target in panel["targets"])]


@pytest.mark.asyncio
async def test_every_metric_that_is_asked_for_is_there_and_what_is_told_is_well_formed(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "device", "a/+"):
        declare(gateway, "deep")
        await publish(client, "amq.default", "deep", "x")
        await client.get("/api/whoami", auth=("guest", "wrong"))
        text = (await client.get("/metrics")).text
        strict = list(strict_families((await client.get("/metrics", headers=OPEN_METRICS)).text))
    known = set()
    for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE):
        known |= {name, *(f"{name}_{end}" for end in ("sum", "count", "bucket"))}
    names = {name for asked in _asked() for name in NAME.findall(asked)}
    assert len(names) > 40
    assert names - known == set()
    samples = {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in strict
        for sample in family.samples
    }
    assert samples["lmq_logins_total", "mqtt", "anonymous"] == 1
    assert samples["lmq_logins_total", "admin", "wrong"] == 1
    assert samples["lmq_oldest_queue_message_age_seconds", "deep", "/"] < 60
    (listening,) = [key for key in samples if key[0] == "lmq_listener_connections" and key[-1] == "mqtt"]
    assert samples[listening] == 1
    assert samples["lmq_alarm", "disk_low"] == 0
    if shutil.which("promtool") is not None:
        await asyncio.to_thread(_check, "metrics", text=text)


def test_each_alert_is_in_the_operators_manual():
    manual = (ROOT / "docs/operations.md").read_text()
    alerts = re.findall(r"alert: (\w+)", ALERTS.read_text())
    assert [name for name in alerts if f"`{name}`" not in manual] == []


def test_the_rules_are_well_formed():
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool here: Debian's package prometheus has it")
    _check("rules", ALERTS)


def _check(*words, text=""):
    result = subprocess.run(["promtool", "check", *words], input=text, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
