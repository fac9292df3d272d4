from __future__ import annotations

import time

import pytest
import typer

from gateway.commands.moments import read_moment


def test_moments_are_read_and_are_utc_where_they_do_not_say(capsys):
    assert read_moment("1970-01-01T00:00:01") == 1_000
    assert read_moment("1970-01-01T01:00+01:00") == 0
    with pytest.raises(typer.Exit):
        read_moment("yesterday")
    assert (
        capsys.readouterr().err
        == "lmq: 'yesterday' is neither a time such as 2026-01-31T12:00 nor a while ago such as -1h\n"
    )


def test_a_while_ago_is_a_moment():
    for text, passed_ms in (("-1h30m", 5_400_000), ("-7d", 604_800_000), ("-15s", 15_000)):
        assert abs(time.time() * 1_000 - passed_ms - read_moment(text)) < 60_000
