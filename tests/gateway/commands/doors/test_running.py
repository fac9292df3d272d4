from __future__ import annotations

import pytest
import typer

from gateway.commands.doors.running import run
from gateway.commands.doors.traffic import LinkError


def test_what_a_link_says_is_one_line_and_a_code(capsys):
    async def fail():
        raise LinkError("it is not there", 4)

    with pytest.raises(typer.Exit) as ended:
        run(fail())
    assert ended.value.exit_code == 4
    assert capsys.readouterr().err == "lmq: it is not there\n"


def test_ctrl_c_ends_with_the_code_that_the_command_says():
    async def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        run(interrupted(), interrupted=130)
    assert ended.value.exit_code == 130
