from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from gateway.commands import in_bash
from gateway.commands.client import AdminClient
from gateway.commands.in_bash import join_words, shape
from tests.support.sources import ROOT


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["lmq", "queue", "purge", "or"], ["lmq", "queue", "purge", "or"]),
        (["lmq", "orders", ":"], ["lmq", "orders:"]),
        (["lmq", "orders", ":", "n"], ["lmq", "orders:n"]),
        (["lmq", "a", "::", "b", ":", "c"], ["lmq", "a::b:c"]),
        (["lmq", "--vhost", "=", "tea"], ["lmq", "--vhost=tea"]),
        (["lmq", "--admin", "host", ":", "15672", ""], ["lmq", "--admin", "host:15672", ""]),
    ],
)
def test_what_bash_took_apart_is_put_together(pieces, words):
    assert join_words(pieces) == words


@pytest.mark.parametrize(
    ("value", "typed", "put"),
    [
        ("plain-a", "pl", "plain-a"),
        ("orders:new", "or", "orders:new"),
        ("orders:new", "orders:", "new"),
        ("a::b:c", "a::b:", "c"),
        ("team/a b", "tea", "team/a\\ b"),
        ("team/a b", "team/a\\ ", "team/a\\ b"),
        ("team/a b", "--vhost=tea", "team/a\\ b"),
        ("team/a b", '"tea', "team/a b"),
        ("%LMQ%amqp%|2f%q", "%LMQ", "%LMQ%amqp%\\|2f%q"),
        ("$x`y`;'", "", "\\$x\\`y\\`\\;\\'"),
        ("größe", "gr", "größe"),
    ],
)
def test_a_name_becomes_one_argument(value, typed, put):
    assert shape(value, typed) == put


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    "value", ["$(echo no)", "`echo no`", 'a"; echo no "b', "it's; echo no '", "a\\b", "a!b", "$HOME"]
)
@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_bash_takes_no_part_of_a_name_for_a_command(value, quote):
    line = f"printf %s {quote}{shape(value, quote)}{quote}"
    assert subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout == value


def test_other_shells_are_left_alone(monkeypatch):
    monkeypatch.setenv("_LMQ_COMPLETE", "complete_zsh")
    assert not in_bash.is_asked()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_names_with_blanks_colons_and_pipes(running, tmp_path):
    admin = f"127.0.0.1:{running.port('admin')}"
    client = AdminClient(admin)
    for name in ("bash%3Anew", "bash%3Aold", "bash%20one", "bash%7Cpipe"):
        client.send("PUT", f"/api/queues/%2F/{name}", {"durable": True})
    (tmp_path / "lmq").write_text(
        f"#!{sys.executable}\nimport sys\nsys.argv[0] = 'lmq'\nfrom gateway.commands.main import main\nmain()\n"
    )
    (tmp_path / "lmq").chmod(0o755)
    script = """
        eval "$(_LMQ_COMPLETE=source_bash lmq)"
        complete_at() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _lmq_completion lmq; printf '%s,' "${COMPREPLY[@]}"; echo
        }
        complete_at lmq queue purge bash
        complete_at lmq queue purge bash : o
        complete_at lmq queue purge --admin "${LMQ_ADMIN%:*}" : "${LMQ_ADMIN#*:}" bash :
        complete_at lmq queue peek --vhost = / 'bash\\|'
    """
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "LMQ_ADMIN": admin}
    for admin_given in (admin, "127.0.0.1:9"):  # the third line says by itself which gateway it asks
        asked = {**env, "LMQ_CLI_ADMIN": admin_given}
        told = subprocess.run(["bash", "-c", script], env=asked, capture_output=True, text=True, check=True).stdout
        lines = told.splitlines()
        assert lines[2] == "new,old,"
        if admin_given == admin:
            assert lines[0] == "bash\\ one,bash:new,bash:old,bash\\|pipe,"
            assert lines[1] == "old,"
            assert lines[3] == "bash\\|pipe,"
    for name in ("bash%3Anew", "bash%3Aold", "bash%20one", "bash%7Cpipe"):
        client.send("DELETE", f"/api/queues/%2F/{name}")
