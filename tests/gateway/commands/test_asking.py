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


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_what_cannot_be_taken_back_is_asked_for(monkeypatch, capsys):
    asking.confirm("all of it goes", yes=True)
    monkeypatch.setattr(asking.sys, "stdin", Terminal("y\n"))
    asking.confirm("all of it goes", yes=False)
    assert capsys.readouterr().err == "all of it goes. Go on? [y/N] "
    for answer, words in (
        (Terminal("\n"), "nothing was done"),
        (io.StringIO("y\n"), "all of it goes; add --yes to do it"),
    ):
        monkeypatch.setattr(asking.sys, "stdin", answer)
        with pytest.raises(typer.Exit):
            asking.confirm("all of it goes", yes=False)
        assert words in capsys.readouterr().err
