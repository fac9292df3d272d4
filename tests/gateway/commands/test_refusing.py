from __future__ import annotations

import pytest
import typer

from gateway.commands.refusing import plain_errors, refuse


def test_an_error_that_an_operator_can_put_right_is_one_line(capsys):
    with pytest.raises(typer.Exit) as ended, plain_errors(ValueError):
        raise ValueError("the folder is full")
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == "lmq: the folder is full\n"
    with pytest.raises(KeyError), plain_errors(ValueError):
        raise KeyError("ours")
    with pytest.raises(typer.Exit):
        refuse("no")
