from __future__ import annotations

import sys

import pytest

from gateway.auth.backends.kinds import KINDS, describe_clear, make_backends
from gateway.settings.backends import KINDS as SETTINGS
from gateway.settings.models import AuthSettings, SettingsError


def test_each_kind_of_the_settings_is_made():
    assert list(KINDS) == list(SETTINGS)


def test_back_ends_are_made_in_order_and_a_mistake_is_told_with_its_place():
    first = {"kind": "http", "url": "http://x/1"}
    second = {"kind": "http", "url": "http://x/2"}
    made = make_backends(AuthSettings.model_validate({"backends": [first, second]}), {})
    assert [backend.settings.url for backend in made] == ["http://x/1", "http://x/2"]
    wrong = AuthSettings.model_validate({"backends": [first, {**second, "authorization_env": "KEY"}]})
    with pytest.raises(SettingsError, match=r"auth\.backends\[1\] authorization_env: KEY"):
        make_backends(wrong, {})


def test_directory_needs_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "ldap3", None)
    monkeypatch.delitem(sys.modules, "gateway.auth.backends.ldap_backend", raising=False)
    said = {"kind": "ldap", "url": "ldap://x", "base": "o=x"}
    with pytest.raises(SettingsError, match=r"auth\.backends\[0\] needs the extra ldap"):
        make_backends(AuthSettings.model_validate({"backends": [said]}), {})


@pytest.mark.parametrize(
    ("backend", "is_warned"),
    [
        ({"kind": "http", "url": "http://192.0.2.7/login"}, True),
        ({"kind": "http", "url": "http://127.0.0.1.example.com/"}, True),
        ({"kind": "http", "url": "http://unix/"}, True),
        ({"kind": "http", "url": "https://192.0.2.7/login"}, False),
        ({"kind": "http", "url": "http://localhost:8000/"}, False),
        ({"kind": "http", "url": "http://[::1]:8000/"}, False),
        ({"kind": "ldap", "url": "ldap://192.0.2.7", "user_dn": "uid=${username}"}, True),
        ({"kind": "ldap", "url": "ldap://192.0.2.7", "user_dn": "uid=${username}", "starttls": True}, False),
        ({"kind": "ldap", "url": "ldaps://192.0.2.7", "user_dn": "uid=${username}"}, False),
        ({"kind": "sql", "dsn": "sqlite:/x", "query": "SELECT ${username}"}, False),
    ],
)
def test_back_end_beyond_this_machine_that_gets_passwords_in_clear_is_told_of(backend, is_warned):
    lines = describe_clear(AuthSettings.model_validate({"backends": [backend]}))
    assert [("in clear" in line and "auth.backends[0]" in line) for line in lines] == [True] * is_warned
