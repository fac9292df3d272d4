"""Bridges of a mosquitto.conf, as `bridges.NAME`."""

from __future__ import annotations

import re
import shlex
from typing import Any

from gateway.commands.mosquitto.lines import Line, MosquittoFileError, read_bool

PORT = 1883  # where an address names none
SETTING_BY_WORD = {
    "clientid": "client_id", "remote_clientid": "client_id", "username": "username", "remote_username": "username",
    "keepalive_interval": "keep_alive_s", "bridge_cafile": "ca", "bridge_certfile": "certificate",
    "bridge_keyfile": "key",
}  # fmt: skip
PASSWORDS = frozenset(("password", "remote_password"))
TAKEN = frozenset((
    *SETTING_BY_WORD, *PASSWORDS, "address", "addresses", "topic", "try_private", "bridge_protocol_version",
    "bridge_insecure",
))  # fmt: skip
_OF_TLS = frozenset(("ca", "certificate", "key"))
_DIRECTIONS = frozenset(("in", "out", "both"))
_NO_NAME = re.compile(r"[^A-Za-z0-9]")


class Bridge:
    """One bridge, from its line on."""

    def __init__(self, line: Line) -> None:
        self.name, self.place = line.rest, line.place
        self._table: dict[str, Any] = {"version": "3.1.1"}  # what Mosquitto speaks where nothing is said
        self._tls: dict[str, Any] = {}
        self._topics: list[dict[str, Any]] = []
        self._hints: list[str] = []

    def say(self, line: Line) -> None:
        """Take a line of those in `TAKEN`.

        Raises:
            MosquittoFileError: It cannot be understood.
        """
        if line.word == "topic":
            self._topics.append(_topic(line))
        elif line.word in {"address", "addresses"}:
            first, *others = line.rest.split() or [""]
            if not first:
                raise MosquittoFileError(f"{line.place}: {line.word}: not valid by mosquitto.conf(5)")
            self._table["address"] = first if ":" in first else f"{first}:{PORT}"
            self._hints += [f"{line.place}: {address}: a bridge has one address" for address in others]
        elif line.word in PASSWORDS:
            self._table["password_env"] = f"BRIDGE_{_NO_NAME.sub('_', self.name).upper()}_PASSWORD"
            self._hints.append(f"{line.place}: the gateway takes the password from {self._table['password_env']}")
        elif line.word == "bridge_insecure":
            self._tls["verify"] = not read_bool(line)
        elif line.word == "bridge_protocol_version":
            self._table["version"] = "5" if line.rest == "mqttv50" else "3.1.1"
        elif line.word == "try_private":
            self._table["try_private"] = read_bool(line)
        else:
            name = SETTING_BY_WORD[line.word]
            is_number = name == "keep_alive_s" and line.rest.isdecimal()
            (self._tls if name in _OF_TLS else self._table)[name] = int(line.rest) if is_number else line.rest

    def table(self) -> dict[str, Any]:
        """Return the settings of `bridges.NAME`."""
        return {**self._table, "topics": self._topics, **({"tls": self._tls} if self._tls else {})}

    def hints(self) -> list[str]:
        """Return what else is to be known or done."""
        return self._hints


def _topic(line: Line) -> dict[str, Any]:
    """Return an entry of a bridge's `topics`: `topic PATTERN [DIRECTION [QOS [LOCAL-PREFIX [REMOTE-PREFIX]]]]`."""
    try:
        pattern, direction, qos, local_prefix, remote_prefix, *_ = [*shlex.split(line.rest), *([""] * 5)]
    except ValueError as error:
        raise MosquittoFileError(f"{line.place}: {line.rest}: {error}") from error
    if not pattern or (direction or "out") not in _DIRECTIONS or (qos or "0") not in {"0", "1", "2"}:
        raise MosquittoFileError(f"{line.place}: topic {line.rest}: not valid by mosquitto.conf(5)")
    topic = {"filter": pattern, "direction": direction or "out", "qos": int(qos or "0")}
    prefixes = {"local_prefix": local_prefix, "remote_prefix": remote_prefix}
    return topic | {name: prefix for name, prefix in prefixes.items() if prefix}
