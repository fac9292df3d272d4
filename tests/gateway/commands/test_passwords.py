from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys

import pytest

from gateway.auth.users import check_password
from tests.support.commands import check_refused, run_lmq
from tests.support.sources import ROOT


@pytest.mark.slow
def test_hash_of_a_password_from_a_pipe_stands_alone_on_stdout():
    result = run_lmq("hash-password", input="secret\n")
    assert (result.returncode, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    assert check_password(b"secret", line)
    check_refused(run_lmq("hash-password", input=""), "the password is empty")


def _type_passwords(*passwords):
    """Return what `lmq hash-password` says on stdout and on its terminal, and its exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "hash-password"],
        cwd=ROOT,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # no terminal but this one
    )
    os.close(theirs)
    said = b""
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        for number, password in enumerate(passwords, 1):
            while said.count(b": ") < number:
                said += terminal.read(1)
            terminal.write(password + b"\n")
        out, _ = process.communicate(timeout=30)
        with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
            while more := terminal.read(1024):
                said += more
    return out, said.decode(), process.returncode


@pytest.mark.slow
def test_hash_of_a_password_that_is_asked_for_stands_alone_on_stdout():
    out, said, code = _type_passwords(b"secret", b"secret")
    assert code == 0, said
    (line,) = out.splitlines()
    assert check_password(b"secret", line)
    assert "secret" not in said
    out, said, code = _type_passwords(b"secret", b"sacred")
    assert (out, code) == ("", 2)
    assert "lmq: the two passwords differ" in said
