from __future__ import annotations

import pytest

from gateway.commands.main import cli
from gateway.commands.panels import PANELS
from tests.support.commands import START_MAX_S, call_lmq, processor_s


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
    assert processor_s("--help") < START_MAX_S
