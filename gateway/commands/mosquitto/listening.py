"""Listeners of a mosquitto.conf, as addresses in `mqtt.listen`."""

from __future__ import annotations

from typing import Any

from gateway.commands.mosquitto.lines import Line

TAKEN = frozenset((
    "protocol", "certfile", "keyfile", "cafile", "crlfile", "ciphers", "tls_version", "require_certificate",
    "use_identity_as_username", "use_subject_as_username", "max_connections",
))  # fmt: skip
YES = "true"
WEBSOCKET_PATH = "/mqtt"


class Listener:
    """One listener, from its line on."""

    def __init__(self, line: Line) -> None:
        port, _, host = line.rest.partition(" ")
        self.place = line.place
        self.host, self.port = host.strip(), port
        self._said: dict[str, str] = {}

    @property
    def is_local(self) -> bool:
        """Whether it is reached from this machine only."""
        return self.port == "0" or self.host in {"127.0.0.1", "::1", "localhost"}

    def say(self, line: Line) -> None:
        """Take a line of those in `TAKEN`."""
        self._said[line.word] = line.rest

    def address(self) -> str | dict[str, Any]:
        """Return the entry of `mqtt.listen`."""
        more: dict[str, Any] = {"websocket": WEBSOCKET_PATH} if self._is_websocket else {}
        connections = self._said.get("max_connections", "-1")
        if connections.isdecimal() and int(connections):
            more["connections_max"] = int(connections)
        if tls := self._tls():
            more["tls"] = tls
        return {"address": self._place_of_socket(), **more} if more else self._place_of_socket()

    def hints(self) -> list[str]:
        """Return what else is to be known or done."""
        found = []
        if self._is_websocket:
            found.append(f"{self.place}: clients by WebSocket come to the path {WEBSOCKET_PATH}, and no other")
        if self._user_from():
            found.append(f"{self.place}: each name in a certificate has to be a user: lmq user add NAME --generate")
        return found

    @property
    def _is_websocket(self) -> bool:
        return self._said.get("protocol") == "websockets"

    def _place_of_socket(self) -> str:
        if self.port == "0":
            return f"unix:{self.host}"
        host = self.host or "0.0.0.0"  # noqa: S104 - as Mosquitto does
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def _user_from(self) -> str:
        if self._said.get("use_identity_as_username") == YES:
            return "common_name"
        return "subject" if self._said.get("use_subject_as_username") == YES else ""

    def _tls(self) -> dict[str, str]:
        if "certfile" not in self._said:
            return {}
        said = self._said
        tls = {"certificate": said["certfile"], "key": said.get("keyfile", "")}
        if said.get("require_certificate") == YES:
            tls |= {"client_ca": said.get("cafile", ""), "crl": said.get("crlfile", ""), "user_from": self._user_from()}
        version = said.get("tls_version", "").removeprefix("tlsv")
        tls |= {"ciphers": said.get("ciphers", ""), "version_min": version if version == "1.3" else ""}
        return {name: value for name, value in tls.items() if value}
