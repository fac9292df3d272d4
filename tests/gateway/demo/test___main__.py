from __future__ import annotations

import pytest

pytest.importorskip("aio_pika")
pytest.importorskip("aiomqtt")

import typer
from typer.testing import CliRunner

from gateway.demo.__main__ import main, make_console


def invoke(*arguments):
    command = typer.Typer()
    command.command()(main)
    return CliRunner().invoke(command, arguments)


def test_a_folder_of_others_is_one_line_and_exit_code_1(tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "precious").touch()
    result = invoke("--dir", str(tmp_path))
    assert result.exit_code == 1
    assert "not made by the demo" in result.stderr
    assert result.stderr.count("\n") == 1


def test_numbers_out_of_range_are_refused(tmp_path):
    assert invoke("--seconds", "0", "--dir", str(tmp_path)).exit_code == 2
    assert invoke("--devices", "0", "--dir", str(tmp_path)).exit_code == 2


def test_tables_have_room_where_nobody_watches():
    assert make_console().width >= 120
