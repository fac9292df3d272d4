"""A mosquitto.conf, as settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.commands.mosquitto import bridging, listening
from gateway.commands.mosquitto.access import read_acl, read_passwords
from gateway.commands.mosquitto.bridging import Bridge
from gateway.commands.mosquitto.lines import (
    Line,
    MosquittoFileError,
    find_path,
    read_bool,
    read_lines,
    read_text,
    split_lines,
)
from gateway.commands.mosquitto.listening import Listener

# The gateway does what these say, or they say nothing to it.
NEEDLESS = frozenset((
    "persistence", "persistence_location", "persistence_file", "autosave_interval", "autosave_on_changes", "user",
    "pid_file", "allow_anonymous", "password_file", "acl_file", "per_listener_settings",
))  # fmt: skip
# Lines with these values say what the gateway does anyway; lines with other values are left out.
ANYWAY = {
    "cleansession": "false", "local_cleansession": "false", "notifications": "false", "start_type": "automatic",
    "queue_qos0_messages": "true", "retain_available": "true", "allow_zero_length_clientid": "true",
    "upgrade_outgoing_qos": "false", "use_username_as_clientid": "false",
}  # fmt: skip
# They keep clients out, or apart from each other, in ways that the gateway has not: without them more would be allowed.
CLOSING = frozenset((
    "auth_plugin", "plugin", "global_plugin", "plugin_load", "clientid_prefixes", "mount_point", "psk_file", "psk_hint",
    "listener_allow_anonymous",
))  # fmt: skip
PACKET_BYTES_MAX = 268_435_460  # MQTT's largest length, and the 5 bytes before it
HEADER_BYTES = 65_536  # what a PUBLISH may have beside its body, about
INFLIGHT_MAX = 32_767  # the bound of the setting: half of the packet identifiers
SECONDS_BY_UNIT = {"h": 3_600, "d": 86_400, "w": 604_800, "m": 2_592_000, "y": 31_536_000}


def _expiry(text: str) -> int:
    return int(text[:-1]) * SECONDS_BY_UNIT[text[-1]]


# Each with the setting of `mqtt` and how its value is made; 0 is no limit at Mosquitto.
NUMBERS: dict[str, tuple[str, Callable[[str], int]]] = {
    "message_size_limit": (
        "packet_bytes_max",
        lambda text: min(int(text) + HEADER_BYTES, PACKET_BYTES_MAX) if int(text) else PACKET_BYTES_MAX,
    ),
    "max_packet_size": ("packet_bytes_max", lambda text: int(text) or PACKET_BYTES_MAX),
    "max_inflight_messages": ("inflight_max", lambda text: min(int(text) or INFLIGHT_MAX, INFLIGHT_MAX)),
    "max_queued_messages": ("queued_count_max", int),
    "max_queued_bytes": ("queued_bytes_max", int),
    "max_keepalive": ("keep_alive_max_s", int),
    "persistent_client_expiration": ("session_expiry_s", _expiry),
    "sys_interval": ("sys_interval_s", int),
}


class Conversion:
    """The settings that a mosquitto.conf makes, and what has to be said about it."""

    def __init__(self, path: Path) -> None:
        """Read the file and those that it names.

        Raises:
            MosquittoFileError: One of them cannot be read, or cannot be taken over as a whole.
        """
        self.left_out: list[str] = []  # lines that became no setting, with their places
        self.hints: list[str] = []  # what else is to be known or done
        self._folder = path.parent
        self._default = Listener(Line(path.name, "listener", ""))  # of what stands before all others
        self._listeners: list[Listener] = []
        self._bridges: list[Bridge] = []
        self._mqtt: dict[str, Any] = {}
        lines = list(read_lines(path))
        self._last = {line.word: line for line in lines}  # for words that are said once
        if self._says("per_listener_settings"):
            raise MosquittoFileError(f"{path}: with per_listener_settings each listener has users and rules of its own")
        for line in lines:
            self._take(line)
        if self._default.is_open:
            self._listeners.insert(0, self._default)

    def settings(self) -> dict[str, Any]:
        """Return the tables of the settings, by name."""
        listen = [listener.address() for listener in self._listeners] or ["127.0.0.1:1883"]
        for listener in self._listeners:
            self.hints += listener.hints()
        for bridge in self._bridges:
            self.hints += bridge.hints()
        made: dict[str, Any] = {"mqtt": {"listen": listen, **self._mqtt}, "auth": self._auth()}
        if self._bridges:
            made["bridges"] = {bridge.name: bridge.table() for bridge in self._bridges}
        return made

    def _take(self, line: Line) -> None:
        if line.word in CLOSING or (line.word == "use_username_as_clientid" and read_bool(line)):
            raise MosquittoFileError(
                f"{line.place}: {line.word} keeps clients out or apart, and becomes no setting: without this line the "
                "rest can be converted, and would let them in"
            )
        if line.word == "listener":
            self._listeners.append(Listener(line))
        elif line.word == "connection":
            self._bridges.append(Bridge(line))
        elif line.word in bridging.TAKEN and self._bridges:
            self._bridges[-1].say(line)
        elif line.word == "port":
            self._default.port = line.rest
        elif line.word == "bind_address":
            self._default.host = line.rest
        elif line.word in listening.TAKEN:
            (self._listeners[-1] if self._listeners else self._default).say(line)
        elif line.word in NUMBERS:
            self._take_number(line)
        elif line.word not in NEEDLESS and ANYWAY.get(line.word) != line.rest:
            self.left_out.append(f"{line.place}: {line.word} {line.rest}".rstrip())

    def _take_number(self, line: Line) -> None:
        setting, read = NUMBERS[line.word]
        try:
            self._mqtt[setting] = read(line.rest)
        except (ValueError, LookupError) as error:
            raise MosquittoFileError(
                f"{line.place}: {line.word} {line.rest}: not as mosquitto.conf(5) has it"
            ) from error

    def _auth(self) -> dict[str, Any]:
        auth: dict[str, Any] = {"mqtt_anonymous": self._lets_anonymous_in()}
        if "acl_file" in self._last:
            acl = self._last["acl_file"].rest
            auth["default"] = "deny"
            auth["rules"], left_out = read_acl(split_lines(self._read(acl), Path(acl).name))
            self.left_out += left_out
            self.hints.append("auth.default is deny at each door: AMQP and RocketMQ clients need rules, too")
        elif auth["mqtt_anonymous"] and not all(listener.is_local for listener in self._listeners):
            auth["open"] = True
        if "password_file" in self._last:
            passwords = self._last["password_file"].rest
            hashes, left_out = read_passwords(self._read(passwords).splitlines(), Path(passwords).name)
            auth["users"] = {name: {"password_hash": kept} for name, kept in hashes.items()}
            self.left_out += left_out
        return auth

    def _lets_anonymous_in(self) -> bool:
        """Return what Mosquitto 2 does: without a word about it, where it has no listener either."""
        return self._says("allow_anonymous") if "allow_anonymous" in self._last else not self._listeners

    def _says(self, word: str) -> bool:
        return word in self._last and read_bool(self._last[word])

    def _read(self, name: str) -> str:
        return read_text(find_path(name, self._folder))
