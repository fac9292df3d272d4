from __future__ import annotations

import sys

import pytest

from gateway.auth.backends.kinds import KINDS, make_backends
from gateway.backend_settings import KINDS as SETTINGS
from gateway.settings import AuthSettings, SettingsError


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
