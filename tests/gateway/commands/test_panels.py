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
    assert len(placed) == len({*placed})
    assert {*placed} <= {*names}
    told: dict[str, list[str]] = {}
    for line in call_lmq("--help").stdout.partition("Options:")[2].splitlines():
        if line.endswith(":") and not line.startswith(" "):
            told[line.removesuffix(":")] = rows = []
        elif line.startswith("  ") and line[2] != " " and told:
            rows.append(line.split()[0])
    assert told.pop("Others", []) == [name for name in names if name not in placed]
    assert told == {panel: list(names) for panel, names in PANELS.items()}


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
