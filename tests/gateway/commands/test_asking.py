from __future__ import annotations

import io

import pytest
import typer

from gateway.commands import asking


def test_password_is_the_first_line_of_a_pipe(monkeypatch):
    monkeypatch.setattr(asking.sys, "stdin", io.StringIO("secret word\r\nmore\n"))
    assert asking.ask_password() == "secret word"


def test_an_empty_password_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(asking.sys, "stdin", io.StringIO(""))
    with pytest.raises(typer.Exit):
        asking.ask_password()
    assert "the password is empty" in capsys.readouterr().err
