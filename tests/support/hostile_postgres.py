"""A server that begins as PostgreSQL does, and then does what a test says."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

SSL, GSS = 80877103, 80877104  # codes of the requests for encryption


def message(kind, body=b""):
    return kind + struct.pack(">I", 4 + len(body)) + body


def row(*values):
    """Return a DataRow of texts; None is NULL."""
    parts = [struct.pack(">i", -1) if one is None else struct.pack(">I", len(one)) + one for one in values]
    return message(b"D", struct.pack(">H", len(values)) + b"".join(parts))


def columns(*names):
    """Return a RowDescription of columns of the type text."""
    fields = [name + b"\0" + struct.pack(">IHIhih", 0, 0, 25, -1, -1, 0) for name in names]
    return message(b"T", struct.pack(">H", len(names)) + b"".join(fields))


WELCOME = b"".join(
    (
        message(b"R", struct.pack(">I", 0)),
        message(b"S", b"client_encoding\0UTF8\0"),
        message(b"S", b"server_version\x0015.0\0"),
        message(b"S", b"standard_conforming_strings\0on\0"),
        message(b"K", struct.pack(">II", 1, 2)),
        message(b"Z", b"I"),
    )
)
BEGIN = message(b"1") + message(b"2") + columns(b"hash", b"groups")  # parsed, bound, described
END = message(b"C", b"SELECT 1\0") + message(b"Z", b"I")


class HostilePostgres:
    """Calls `answer(socket)` for each question; `welcome` is what a client is told that comes, None: nothing.

    `sent` is how many bytes `send` got rid of, `connections` how many clients came.
    """

    def __init__(self, answer=None, welcome=WELCOME):
        self.answer = answer
        self.welcome = welcome
        self.sent = 0
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open = []
        self.dsn = f"postgresql://lmq:pg-secret@127.0.0.1:{self._listener.getsockname()[1]}/postgres"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc_info):
        for sock in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def send(self, sock, data):
        """Send, and count; raises OSError once the client is gone."""
        view = memoryview(data)
        while view:
            size = sock.send(view)
            self.sent += size
            view = view[size:]

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self.connections += 1
                self._open.append(sock)
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with contextlib.suppress(OSError, struct.error):
            while True:
                (size, code) = struct.unpack(">II", sock.recv(8, socket.MSG_WAITALL))
                if code not in {SSL, GSS}:
                    break
                sock.sendall(b"N")
            sock.recv(size - 8, socket.MSG_WAITALL)
            if self.welcome is not None:
                self.send(sock, self.welcome)
            while True:
                kind, size = struct.unpack(">cI", sock.recv(5, socket.MSG_WAITALL))
                sock.recv(size - 4, socket.MSG_WAITALL)
                if kind in {b"S", b"Q"}:
                    self.answer(sock)
