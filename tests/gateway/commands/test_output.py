from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console

from gateway.commands import output
from gateway.commands.output import (
    Column,
    find,
    fit_table,
    has,
    print_facts,
    print_listed,
    print_table,
    repeat,
    show_answer,
    tell,
)


@pytest.mark.parametrize(
    ("value", "key", "told"),
    [
        (None, "", "-"),
        ("", "", "-"),
        (True, "", "yes"),
        (0, "", "0"),
        (0, "stored_at_ms", "1970-01-01 00:00:00"),
        ({"a": 1, "b": {}}, "", "a=1 b=-"),
        (["x", None], "", "x -"),
        (["two words", "x"], "", "two words, x"),
        ([{"door": "mqtt", "name": "a b/#", "vhost": ""}], "", "a b/# (mqtt)"),
        ([{"door": "amqp", "name": "jobs", "vhost": "/"}], "", "jobs (amqp, /)"),
        ("\x1b[2J\x9b2Jpump\tä\n7", "", "\\x1b[2J\\x9b2Jpump\tä\n7"),
        ({"\x1b[2J": "\x07"}, "", "\\x1b[2J=\\x07"),
    ],
)
def test_values_are_told_as_people_read_them(value, key, told):
    assert tell(value, key) == told


@pytest.mark.parametrize(
    ("width", "titles"), [(80, ["name", "ready", "light queue"]), (36, ["name", "ready"]), (12, ["name"])]
)
def test_a_narrow_table_leaves_columns_out_and_wraps_no_row(width, titles, capsys):
    columns = (Column("name", "name"), Column("ready", "ready"), Column("light queue", "light_queue"))
    rows = [{"name": "n" * length, "ready": 7, "light_queue": "%LMQ%" + "x" * 30} for length in (5, 30)]
    Console(width=width).print(fit_table(columns, rows, width, ("light queue", "ready")))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0].split() == " ".join(titles).split()
    assert len(lines) == 4
    assert all(len(line) <= width for line in lines)
    assert ("…" in lines[3]) == (width < 80)


def test_rows_are_a_table_whose_lines_are_not_cut(capsys):
    rows = [{"name": "a" * 300, "of": {"count": 7}}, {"name": "[b]", "of": None}]
    print_table((Column("name", "name"), Column("count", "of.count")), rows)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0].split() == ["name", "count"]
    assert lines[2].split() == ["a" * 300, "7"]
    assert lines[3].split() == ["[b]", "-"]
    assert find({"a": 1}, "a.b") is None


def test_facts_are_a_line_each(capsys):
    print_facts({"name": "q", "messages": 3})
    assert capsys.readouterr().out == "name      q\nmessages  3\n"


def test_what_is_watched_is_shown_until_somebody_stops_it(monkeypatch, capsys):
    shown = []

    def show():
        shown.append(1)
        if len(shown) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repeat(show, 0.001)
    repeat(lambda: shown.append(2), None)
    assert shown == [1, 1, 1, 2]
    assert output.EMPTY == "-"


def test_a_pipe_is_given_what_is_watched_at_once(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(raw)))
    given = []

    def show():
        given.append(raw.getvalue())
        if len(given) == 3:
            raise KeyboardInterrupt
        sys.stdout.write(f"{len(given)}\n")

    with pytest.raises(KeyboardInterrupt):
        repeat(show, 0.001)
    assert given == [b"", b"1\n", b"1\n2\n"]


@pytest.mark.parametrize(
    ("as_json", "key", "shown"),
    [
        (False, "items", "count  2\n"),
        (True, "items", '{\n  "count": 2\n}\n'),
        (True, None, '{\n  "items": {\n    "count": 2\n  }\n}\n'),
    ],
)
def test_answer_is_told_to_people_and_its_part_or_all_of_it_to_programs(capsys, as_json, key, shown):
    answer = {"items": {"count": 2}}
    show_answer(lambda: answer, lambda found: print_facts(found["items"]), as_json=as_json, watch=None, key=key)
    assert capsys.readouterr().out == shown


def test_what_is_null_is_there_and_what_is_not_named_is_not():
    row = {"user": None, "lmq": {"number": 7}}
    assert [has(row, key) for key in ("user", "lmq.number", "lmq.x", "x", "user.x")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_nothing_to_list_is_no_line(capsys):
    print_listed([], [], as_json=False)
    print_listed(["a"], ["first", "second"], as_json=False)
    print_listed([], [], as_json=True)
    assert capsys.readouterr().out == "first\nsecond\n[]\n"


def test_in_a_narrow_terminal_a_table_leaves_out_what_it_may_and_folds_no_row(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    columns = (Column("name", "name"), Column("ready", "ready"), Column("light queue", "light_queue"))
    print_table(columns, [{"name": "readings", "ready": 7, "light_queue": "%LMQ%amqp%|2f%readings"}], ("light queue",))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    lines = [line.split() for line in plain.splitlines() if line.strip()]
    assert [lines[0], lines[-1]] == [["name", "ready"], ["readings", "7"]]


def test_table_for_a_reader_that_is_gone_ends_as_any_other_line(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    pipe = os.fdopen(writer, "w")
    monkeypatch.setattr("sys.stdout", pipe)
    with pytest.raises(BrokenPipeError):
        print_table([Column("name", "name")], [{"name": "a"}])
    with Path(os.devnull).open("w") as nothing, pipe:  # what is left over goes there
        os.dup2(nothing.fileno(), writer)


def test_a_name_with_the_end_of_a_line_in_it_is_no_second_row(capsys):
    columns, evil = (Column("name", "name"), Column("tags", "tags")), "x\nroot\tadministrator"
    print_table(columns, [{"name": evil, "tags": ""}, {"name": "bob", "tags": evil}])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[3:5]]
    assert rows == [["x\\nroot\\tadministrator", "-"], ["bob", "x\\nroot\\tadministrator"]]
    print_facts({"name": evil, "state": "running"})
    assert capsys.readouterr().out == "name   x\\nroot\\tadministrator\nstate  running\n"
