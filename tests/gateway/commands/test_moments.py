from __future__ import annotations

import pytest
import typer

from gateway.commands.moments import read_moment


def test_moments_are_read_and_are_utc_where_they_do_not_say(capsys):
    assert read_moment("1970-01-01T00:00:01") == 1_000
    assert read_moment("1970-01-01T01:00+01:00") == 0
    with pytest.raises(typer.Exit):
        read_moment("yesterday")
    assert capsys.readouterr().err == "lmq: 'yesterday' is no moment such as 2026-01-31T12:00\n"
