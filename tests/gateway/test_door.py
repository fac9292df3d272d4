from __future__ import annotations

import ast

import pytest

from gateway.door import Door
from gateway.settings.models import MqttSettings
from tests.support.gateway import make_settings, running_gateway
from tests.support.sources import ROOT

FRONTS = ("gateway.mqtt", "gateway.amqp", "gateway.rocketmq")


def _names_in(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_the_application_makes_doors_and_knows_nothing_else_of_them():
    tree = ast.parse((ROOT / "gateway" / "app.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module.startswith(FRONTS)]
    kinds = {alias.name for node in imports for alias in node.names}
    assert {node.module for node in imports} == {f"{front}.door" for front in FRONTS}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert {function.name for function in functions if kinds & _names_in(function)} == {"_make_doors"}
    asked = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "door"
    }
    assert len(asked) > 10
    assert asked <= {*dir(Door), *Door.__annotations__}


@pytest.mark.asyncio
async def test_doors_listen_by_the_names_that_operators_know(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        names = {name: [listen.name for listen in door.listens()] for name, door in gateway.doors.items()}
    assert names == {"mqtt": ["mqtt"], "amqp": ["amqp"], "rocketmq": ["broker", "namesrv"]}


@pytest.mark.asyncio
async def test_doors_have_the_metrics_of_their_name(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        for name, door in gateway.doors.items():
            assert door.name == name
            assert door.metrics is gateway.broker.metrics.door(name)


@pytest.mark.asyncio
async def test_other_limits_hold_after_a_reload(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        assert {door.limits.connections_max for door in gateway.doors.values()} == {0}
        await gateway.reload(make_settings(tmp_path, mqtt=MqttSettings(listen="127.0.0.1:0", connections_max=5)))
        assert gateway.doors["mqtt"].limits.connections_max == 5
