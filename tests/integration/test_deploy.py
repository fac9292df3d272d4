"""The dashboard and the alert rules name metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from gateway.admin.metrics import GatewayCollector
from tests.support.gateway import running_gateway
from tests.support.sources import ROOT

ALERTS = ROOT / "deploy/alerts.yml"
DASHBOARD = ROOT / "deploy/grafana-dashboard.json"
NAME = re.compile(r"\b(?:lmq|process)_[a-z_]+")


@pytest.mark.asyncio
async def test_every_metric_that_is_asked_for_is_there(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        families = list(GatewayCollector(gateway.broker, gateway.capacity).collect())
    known = set()
    for family in families:
        known |= {family.name, *(f"{family.name}_{end}" for end in ("total", "sum", "count", "bucket"))}
    rules = re.findall(r"expr: (.*)", ALERTS.read_text())
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [*rules, *(target["expr"] for panel in panels for target in panel["targets"])]
    names = {name for text in asked for name in NAME.findall(text)}
    assert len(names) > 20
    assert names - known == set()


def test_the_rules_are_well_formed():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool here")
    result = subprocess.run([promtool, "check", "rules", ALERTS], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
