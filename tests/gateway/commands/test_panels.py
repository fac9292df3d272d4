from __future__ import annotations

import resource

import pytest

from gateway.commands.main import cli
from gateway.commands.panels import PANELS
from tests.support.commands import call_lmq, run_lmq


def test_each_command_stands_under_one_heading():
    names = [command.name or command.callback.__name__ for command in cli.registered_commands]
    names += [group.name for group in cli.registered_groups]
    placed = [name for panel in PANELS.values() for name in panel]
    assert sorted(placed) == sorted(names)
    text = call_lmq("--help").stdout
    heads = [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert heads == ["Options", *PANELS]
    assert [line.split()[0] for line in text.splitlines() if line[:3].strip() and line.startswith("  ")][-1] == "token"


@pytest.mark.slow
def test_help_comes_in_less_than_half_a_second_of_processor():
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def cost():
        before = used()
        assert run_lmq("--help").returncode == 0
        return used() - before

    assert min(cost() for _ in range(3)) < 0.5
