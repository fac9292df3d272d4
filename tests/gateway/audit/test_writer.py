from __future__ import annotations

import errno
import threading

import pytest

from gateway.audit.writer import WAITING_MAX, Counts, Writer


class Files:
    """Keeps what is appended; waits as long as it is told to, and refuses what it is told to."""

    def __init__(self):
        self.lines = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.is_full = False
        self.is_closed = False

    def append(self, line):
        self.may_go_on.wait()
        if self.is_full:
            raise OSError(errno.ENOSPC, "no room")
        self.lines.append(line)

    def flush(self):
        pass

    def close(self):
        self.is_closed = True


@pytest.fixture
def files():
    return Files()


def test_slow_disk_holds_nobody_up_and_what_is_too_much_is_counted(files):
    counts = Counts()
    writer = Writer(files, counts)
    files.may_go_on.clear()
    for number in range(WAITING_MAX + 100):
        writer.put(lambda number=number: b"%d" % number)
    assert 0 < counts.lost <= 100
    files.may_go_on.set()
    writer.end()
    writer.join()
    assert counts.written == len(files.lines) == WAITING_MAX + 100 - counts.lost
    assert files.lines[:2] == [b"0", b"1"]
    assert files.is_closed


def test_full_disk_loses_lines_which_are_counted_and_what_comes_later_is_written(files, caplog):
    counts = Counts()
    files.is_full = True
    writer = Writer(files, counts)
    writer.put(lambda: b"lost")
    while not counts.lost:
        pass
    files.is_full = False
    writer.put(lambda: b"kept")
    writer.end()
    writer.join()
    assert (files.lines, counts.lost, counts.written) == ([b"kept"], 1, 1)
    assert "audit log cannot be written lost=1" in caplog.text
