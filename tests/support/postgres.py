"""A PostgreSQL server for tests, from the system's packages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

READY_S = 60


def find_tool(name):
    """Return the path of a program of PostgreSQL, None where there is none."""
    found = sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))
    return shutil.which(name) or (found[-1] if found else None)


class PostgresServer:
    """Use as a context manager; `dsn` says how it is reached."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="lmq-postgres-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.dsn = f"postgresql://lmq:pg-secret@127.0.0.1:{self.port}/postgres"
        self._as = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}

    def __enter__(self):
        data, password = self.folder / "data", self.folder / "password"
        password.write_text("pg-secret")
        if self._as:
            for path in (self.folder, password):
                shutil.chown(path, "nobody", "nogroup")
        ways = ["--username=lmq", f"--pwfile={password}", "--auth=scram-sha-256", "--no-sync"]
        self._run(find_tool("initdb"), "-D", str(data), "-E", "UTF8", "--locale=C", *ways)
        self.start()
        return self

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k {self.folder}"
        log = str(self.folder / "log")
        self._run(find_tool("pg_ctl"), "-D", str(self.folder / "data"), "-l", log, "-w", "-o", options, "start")

    def stop(self):
        self._run(find_tool("pg_ctl"), "-D", str(self.folder / "data"), "-w", "-m", "immediate", "stop")

    def __exit__(self, *exc_info):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, *command):
        subprocess.run(command, check=True, timeout=READY_S, cwd="/", stdout=subprocess.DEVNULL, **self._as)
