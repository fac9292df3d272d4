"""A way to a server that can be cut: all connections by it break, and new ones are let through."""

from __future__ import annotations

import contextlib
import socket
import threading


class CuttingProxy:
    """Listens on a port of its own and carries bytes to `address`, until `cut` or the end of the context."""

    def __init__(self, address):
        self._address = address
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._carriers = []
        self._lock = threading.Lock()  # of the list: a connection that comes during a cut belongs to the next one
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()
        return self

    def __exit__(self, *exc_info):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self.cut()

    def cut(self):
        """Break all connections."""
        with self._lock:
            carriers, self._carriers = self._carriers, []
        for carrier in carriers:
            carrier.cut()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                carrier = _Carrier(near, socket.create_connection(self._address))
                with self._lock:
                    self._carriers.append(carrier)


class _Carrier:
    """Carries the bytes of one connection, both ways."""

    def __init__(self, near, far):
        self._ends = (near, far)
        self._threads = [threading.Thread(target=self._carry, args=way) for way in ((near, far), (far, near))]
        for thread in self._threads:
            thread.start()

    def cut(self):
        """Break it, and wait until nothing of it is left."""
        self._shut()
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()

    def _carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
        self._shut()

    def _shut(self):
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
