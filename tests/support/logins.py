"""Slow checks and clocks for tests of logins: nothing runs on a thread, and time is the test's."""

from __future__ import annotations

import base64
import hashlib

from gateway.runtime.loop import Clock


class HandWork:
    """Runs checks at once, or with `holds` when the test says so; what is to come later waits for `pass_time`."""

    def __init__(self):
        self.holds = False
        self.held = []  # checks under way
        self.later = []  # how many ms, and what then
        self.count = 0  # checks that were begun

    def run(self, work, then):
        self.count += 1
        if self.holds:
            self.held.append((work, then))
        else:
            then(work())

    def call_later(self, delay_ms, callback):
        self.later.append((delay_ms, callback))

    def finish(self, count=1):
        """End the checks that began first."""
        for _ in range(count):
            work, then = self.held.pop(0)
            then(work())

    def finish_all(self):
        """End all checks, and those that begin thereby."""
        while self.held:
            self.finish()

    def pass_time(self, ms=0):
        """Let so much time go by."""
        due = [callback for delay_ms, callback in self.later if delay_ms <= ms]
        self.later = [(delay_ms - ms, callback) for delay_ms, callback in self.later if delay_ms > ms]
        for callback in due:
            callback()


class HandClock(Clock):
    """A clock that stands where `read` says."""

    def __init__(self, read):
        super().__init__()
        self._read = read

    def read_ns(self):
        return self._read() * 1_000_000


def quick_hash(password):
    """Return a password hash that is checked in no time."""
    key = hashlib.scrypt(password.encode(), salt=b"salt", n=2, r=1, p=1, dklen=16)
    return f"scrypt$2$1$1${base64.b64encode(b'salt').decode()}${base64.b64encode(key).decode()}"
