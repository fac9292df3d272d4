"""Which back end is made of which settings."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from gateway.address import leads_here
from gateway.auth.backends.amqtt_backend import AmqttBackend
from gateway.auth.backends.http_backend import HttpBackend
from gateway.auth.backends.question import Backend
from gateway.auth.backends.sql_backend import SqlBackend
from gateway.settings.backends import LdapBackendSettings
from gateway.settings.models import AuthSettings, SettingsError


def _make_ldap(settings: LdapBackendSettings, environment: Mapping[str, str]) -> Backend:
    try:
        module = importlib.import_module("gateway.auth.backends.ldap_backend")
    except ImportError as error:
        raise SettingsError(f"needs the extra ldap: pip install 'lmq-gateway[ldap]' ({error})") from error
    backend: Backend = module.LdapBackend(settings, environment)
    return backend


KINDS: dict[str, Callable[[Any, Mapping[str, str]], Backend]] = {
    "http": HttpBackend,
    "sql": SqlBackend,
    "ldap": _make_ldap,
    "amqtt": AmqttBackend,
}


def describe_clear(settings: AuthSettings) -> list[str]:
    """Return one line for each back end that passwords go to in clear, beyond this machine."""
    lines = []
    for number, said in enumerate(settings.backends):
        url = getattr(said, "url", "")
        is_clear = url.startswith(("http:", "ldap:")) and not getattr(said, "starttls", False)
        if is_clear and not leads_here(url):
            name = f"auth.backends[{number}]"
            lines.append(f"passwords go to a back end in clear: use TLS beyond this machine name={name} url={url}")
    return lines


def make_backends(settings: AuthSettings, environment: Mapping[str, str]) -> list[Backend]:
    """Return the back ends of the settings, in order; slow where files are read.

    Raises:
        SettingsError: One cannot be used: something that its settings name is missing.
    """
    made: list[Backend] = []
    for number, said in enumerate(settings.backends):
        try:
            made.append(KINDS[said.kind](said, environment))
        except SettingsError as error:
            for backend in made:
                backend.close()
            raise SettingsError(f"auth.backends[{number}] {error}") from error
    return made
