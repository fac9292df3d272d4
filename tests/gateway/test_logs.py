from __future__ import annotations

import asyncio
import json
import logging
import sys

import pytest

from gateway.logs import RECENT_MAX, JsonFormatter, TextFormatter, recent_lines, said, set_up_logs, tell


def _record(text, *args, exc_info=None):
    record = logging.LogRecord("gateway.test", logging.WARNING, __file__, 1, text, args, exc_info)
    record.created = 1_700_000_000.25
    return record


def test_text_is_one_line_with_time_level_and_name():
    line = TextFormatter().format(_record("closing conn=%d cause=%s", 7, "eof"))
    assert line == "2023-11-14T22:13:20.250Z warning gateway.test closing conn=7 cause=eof"


def test_peer_cannot_forge_a_line():
    line = TextFormatter().format(_record("client=%s", "a\n2023 info forged\x1b[0m\x85b\x9b2J"))
    assert len(line.splitlines()) == 1
    assert r"a\n2023 info forged\x1b[0m\x85b\x9b2J" in line


def test_json_has_a_key_for_each_field():
    entry = json.loads(JsonFormatter().format(_record("closing %s conn=%d cause=%s", "now", 7, "eof")))
    assert entry["message"] == "closing now"
    assert (entry["conn"], entry["cause"], entry["level"]) == (7, "eof", "warning")


def test_json_keeps_a_message_that_has_no_fields():
    entry = json.loads(JsonFormatter().format(_record("100% of it")))
    assert entry["message"] == "100% of it"


def test_traceback_stands_after_the_line():
    try:
        raise ValueError("wrong")
    except ValueError:
        exc_info = sys.exc_info()
    assert "ValueError: wrong" in TextFormatter().format(_record("failed", exc_info=exc_info))
    assert "ValueError: wrong" in json.loads(JsonFormatter().format(_record("failed", exc_info=exc_info)))["traceback"]


@pytest.mark.usefixtures("kept_logs")
def test_records_under_the_level_are_not_written(capsys):
    set_up_logs("warning", "json")
    logging.getLogger("gateway.x").info("quiet")
    logging.getLogger("gateway.x").warning("loud n=%d", 1)
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["n"] == 1


def test_what_a_peer_says_of_itself_is_cut():
    assert said(b"alice") == said("alice") == "alice"
    assert said("x" * 129) == "x" * 128 + "..."
    assert said("é" * 100) == "é" * 64 + "..."
    assert said(b"\xff") == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.usefixtures("kept_logs")
@pytest.mark.parametrize("style", ["text", "json"])
def test_what_is_told_of_each_connection_is_a_line_like_any_other(capsys, style):
    set_up_logs("info", style)
    logger = logging.getLogger("gateway.x")
    logger.info("connected conn=%d peer=%s", 7, "h:1\n")
    tell(logger, "connected conn=%d peer=%s", 7, "h:1\n")
    first, second = capsys.readouterr().err.splitlines()
    assert _without_time(first, style) == _without_time(second, style)


def _without_time(line, style):
    return json.loads(line) | {"time": ""} if style == "json" else line.split(" ", 1)[1]


@pytest.mark.usefixtures("kept_logs")
def test_nothing_is_told_under_the_level(capsys):
    set_up_logs("warning", "text")
    tell(logging.getLogger("gateway.x"), "connected")
    assert capsys.readouterr().err == ""


def test_who_else_listens_is_given_a_record(caplog):
    with caplog.at_level("INFO"):
        tell(logging.getLogger("gateway.x"), "connected conn=%d", 7)
    assert caplog.messages == ["connected conn=7"]


@pytest.mark.usefixtures("kept_logs")
def test_lines_of_a_turn_are_written_at_its_end_and_a_warning_at_once(capsys):
    set_up_logs("info", "text")
    logger = logging.getLogger("gateway.x")

    def written():
        return [line.split(" ")[-1] for line in capsys.readouterr().err.splitlines()]

    async def work():
        tell(logger, "a")
        logger.info("b")
        assert written() == []
        await asyncio.sleep(0)
        assert written() == ["a", "b"]
        logger.info("c")
        logger.warning("d")
        assert written() == ["c", "d"]
        for _ in range(100):
            tell(logger, "e")
        assert len(written()) > 50
        tell(logger, "f")
        logging.getLogger().handlers[0].flush()
        assert written()[-1] == "f"

    asyncio.run(work())


@pytest.mark.usefixtures("kept_logs", "capsys")
def test_the_last_lines_are_kept_for_operators():
    set_up_logs("info", "text")
    logger = logging.getLogger("gateway.x")
    for number in range(RECENT_MAX + 5):
        tell(logger, "line n=%d", number)
    lines, written = recent_lines()
    assert (len(lines), written) == (RECENT_MAX, RECENT_MAX + 5)
    assert lines[-1].endswith(f"line n={RECENT_MAX + 4}")


@pytest.mark.usefixtures("kept_logs")
def test_where_something_else_takes_the_log_no_lines_are_kept():
    logging.root.handlers[:] = [logging.NullHandler()]
    assert recent_lines() == ([], 0)
