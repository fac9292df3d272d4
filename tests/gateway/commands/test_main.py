from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
import typer

from gateway.auth.users import check_password
from gateway.commands.main import cli
from gateway.settings.doc import settings_page
from gateway.version import VERSION
from tests.support.commands import call_lmq, run_python
from tests.support.sources import ROOT

WITHOUT_JSON = {("serve",): "it runs until it is stopped, and its log has `log.format`"}


def each_command(group=None, path=()):
    """Yield each command with the words that call it, and all options that it takes."""
    for name, command in (group or typer.main.get_command(cli)).commands.items():
        if hasattr(command, "commands"):
            yield from each_command(command, (*path, name))
        else:
            yield (*path, name), {option for parameter in command.params for option in parameter.opts}


def test_each_command_can_answer_programs_and_each_list_goes_on():
    commands = dict(each_command())
    assert {("top",), ("queues", "list"), ("log", "tail")} <= commands.keys()
    assert {path for path, options in commands.items() if "--json" not in options} == WITHOUT_JSON.keys()
    assert [path for path, options in commands.items() if path[-1] == "list" and "--watch" not in options] == []


def test_the_table_of_the_documents_has_each_command():
    text = (ROOT / "docs/operations.md").read_text()
    rows = text.split("| to | `lmq` | elsewhere |\n")[1].split("\n\n")[0].splitlines()[1:]
    named = [words.split() for row in rows for words in re.findall(r"`([^`]+)`", row.split(" | ")[1])]
    called = {path for path, _ in each_command()}
    assert {path for path in called if list(path) not in [words[: len(path)] for words in named]} == set()
    groups = {path[0] for path in called}
    begun = [tuple(words) for words in named if words[0] in groups]
    assert [words for words in begun if not {words[:1], words[:2]} & called] == []  # nothing that is no command


def test_small_commands():
    assert call_lmq("--version").stdout == f"lmq-gateway {VERSION}\n"
    assert call_lmq("config", "doc").stdout == settings_page()
    assert check_password(b"secret", call_lmq("hash-password", "--password", "secret").stdout.strip())
    kept = call_lmq("hash-password", "--password", "secret", "--scram", "--rounds", "5000").stdout.strip()
    assert kept.startswith("scram-sha-256$5000$")
    assert check_password(b"secret", kept)
    assert not check_password(b"Secret", kept)
    told = json.loads(call_lmq("hash-password", "--password", "secret", "--json").stdout)
    assert check_password(b"secret", told["password_hash"])
    assert "mqtt" in json.loads(call_lmq("config", "doc", "--json").stdout)["properties"]


@pytest.mark.slow
def test_a_reader_that_is_gone_is_no_fault():
    command = f"{sys.executable} -m gateway config doc | head -c 1"
    script = ["bash", "-o", "pipefail", "-c", command]
    result = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("line", ["--help", "explain --help", "explain topic a --admin ftp://"])
def test_small_commands_load_none_of_the_gateway(line):
    program = f"import sys; sys.argv[1:] = {line.split()!r}\nfrom gateway.commands.main import main\n"
    program += "try: main()\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    loaded = set(run_python("-c", program).stderr.split())
    heavy = {"asyncio", "fastapi", "rich", "uvicorn", "uvloop", "sqlite3", "prometheus_client", "pamqp"}
    if line == "--help":
        heavy.add("pydantic")  # which typer takes for a command's own options
    assert not heavy & loaded
    ours = {name for name in loaded if name.partition(".")[0] in {"core", "gateway", "spark_analytics"}}
    assert {name for name in ours if not name.startswith("gateway.commands")} == {"gateway", "gateway.version"}
