"""Listeners of a mosquitto.conf, as addresses in `mqtt.listen`."""

from __future__ import annotations

from typing import Any

from gateway.commands.mosquitto.lines import Line, MosquittoFileError, read_bool

TAKEN = frozenset((
    "protocol", "certfile", "keyfile", "cafile", "crlfile", "ciphers", "tls_version", "require_certificate",
    "use_identity_as_username", "use_subject_as_username", "max_connections",
))  # fmt: skip
WEBSOCKET_PATH = "*"  # Mosquitto looks at none
PORT = "1883"  # where none is said
_USUAL = frozenset(("mqtt", "-1", "false", "0"))  # what a listener has anyway


class Listener:
    """One listener, from its line on; that of a file's head has none, nor a port where none is said."""

    def __init__(self, line: Line) -> None:
        port, _, host = line.rest.partition(" ")
        self.place = line.place
        self.host, self.port = host.strip(), port
        self._said: dict[str, Line] = {}

    @property
    def is_open(self) -> bool:
        """Whether Mosquitto opens the one that has no line: where something is said about it."""
        return bool(self.port or self.host) or any(line.rest not in _USUAL for line in self._said.values())

    @property
    def is_local(self) -> bool:
        """Whether it is reached from this machine only."""
        return self.port == "0" or self.host in {"127.0.0.1", "::1", "localhost"}

    def say(self, line: Line) -> None:
        """Take a line of those in `TAKEN`."""
        self._said[line.word] = line

    def address(self) -> str | dict[str, Any]:
        """Return the entry of `mqtt.listen`.

        Raises:
            MosquittoFileError: What it asks of certificates cannot be asked here.
        """
        more: dict[str, Any] = {"websocket": WEBSOCKET_PATH} if self._is_websocket else {}
        connections = self._text("max_connections")
        if connections.isdecimal() and int(connections):
            more["connections_max"] = int(connections)
        if tls := self._tls():
            more["tls"] = tls
        return {"address": self._place_of_socket(), **more} if more else self._place_of_socket()

    def hints(self) -> list[str]:
        """Return what else is to be known or done."""
        found = []
        if self._user_from():
            found.append(f"{self.place}: each name in a certificate has to be a user: lmq user add NAME --generate")
        return found

    @property
    def _is_websocket(self) -> bool:
        return self._text("protocol") == "websockets"

    def _text(self, word: str) -> str:
        return self._said[word].rest if word in self._said else ""

    def _says(self, word: str) -> bool:
        return word in self._said and read_bool(self._said[word])

    def _place_of_socket(self) -> str:
        if self.port == "0":
            return f"unix:{self.host}"
        host, port = self.host or "0.0.0.0", self.port or PORT  # noqa: S104 - as Mosquitto does
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _user_from(self) -> str:
        if self._says("use_identity_as_username"):
            return "common_name"
        return "subject" if self._says("use_subject_as_username") else ""

    def _tls(self) -> dict[str, str]:
        if "certfile" not in self._said:
            return {}
        tls = {"certificate": self._text("certfile"), "key": self._text("keyfile")}
        if self._says("require_certificate"):
            if "cafile" not in self._said:
                raise MosquittoFileError(f"{self.place}: require_certificate needs a cafile here")
            tls |= {"client_ca": self._text("cafile"), "crl": self._text("crlfile"), "user_from": self._user_from()}
        elif self._user_from():
            raise MosquittoFileError(
                f"{self.place}: no client could log in: users come from certificates, and require_certificate is off"
            )
        version = self._text("tls_version").removeprefix("tlsv")
        tls |= {"ciphers": self._text("ciphers"), "version_min": version if version == "1.3" else ""}
        return {name: value for name, value in tls.items() if value}
