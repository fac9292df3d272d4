"""The authenticators of the chain, by the names that a listener has for those that count there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from gateway.settings.listen import ListenSettings, find_listens, is_beyond
from gateway.settings.way_names import ANONYMOUS, API_TOKENS, BACKENDS, CERTIFICATE, GUEST_LOGIN, JWT, USERS

_OF_DOORS = {
    "mqtt": (CERTIFICATE, USERS, JWT, BACKENDS, ANONYMOUS),
    "amqp": (CERTIFICATE, USERS, JWT, BACKENDS, GUEST_LOGIN),
    "rocketmq": (CERTIFICATE, USERS, ANONYMOUS),
    "admin": (USERS, JWT, BACKENDS, API_TOKENS, GUEST_LOGIN, ANONYMOUS),
}


class NamedBackend(Protocol):
    """What is read of a back end's settings."""

    @property
    def called(self) -> str:
        """What listeners call it."""


def find_names(door: str, backends: Iterable[NamedBackend], *, has_tokens: bool) -> list[str]:
    """Return the authenticators that there are at a door."""
    called = list(dict.fromkeys(backend.called for backend in backends))
    missing = {JWT if not has_tokens else "", "" if called else BACKENDS}
    names = [name for name in _OF_DOORS[door] if name not in missing]
    return [*names, *called] if BACKENDS in _OF_DOORS[door] else names


def find_unknown(
    listens: Mapping[str, str | Sequence[ListenSettings]], backends: Sequence[NamedBackend], *, has_tokens: bool
) -> str | None:
    """Return what is wrong where a listener names an authenticator that there is not at its door; else None."""
    for setting, listen in listens.items():
        known = find_names(setting.partition(".")[0], backends, has_tokens=has_tokens)
        for one in find_listens(listen):
            unknown = [name for name in one.authenticators if name not in known]
            if unknown:
                return (
                    f"authenticators of {setting} {one.address} names '{unknown[0]}', which is none here: "
                    f"there are {', '.join(known)}"
                )
    return None


def find_open(listen: str | Sequence[ListenSettings], setting: str, *, lets: bool) -> str | None:
    """Return what lets everybody in from beyond this machine: a setting, or what a listener names; else None."""
    for one in find_listens(listen):
        names = one.authenticators
        if (ANONYMOUS in names if names else lets) and is_beyond(one):
            cause = f"'{ANONYMOUS}' among the authenticators of {one.address}" if names else setting
            return f"{cause} lets everybody in who reaches {one.address}"
    return None
