from __future__ import annotations

import tomllib

import pytest
from pydantic import ValidationError

from gateway.settings.backends import HttpBackendSettings, LdapBackendSettings, SqlBackendSettings, fill
from gateway.settings.changes import find_changes
from gateway.settings.models import AuthSettings, GatewaySettings, SettingsError
from gateway.settings.reading import check_settings
from gateway.settings.text import settings_text

URL = "http://127.0.0.1:8000/auth"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"url": "ftp://x"}, "must be an address"),
        ({"url": "http://"}, "must be an address"),
        ({"url": "http://[x"}, "must be an address"),
        ({"url": "http://x/ y"}, "must be an address"),
        ({"url": "http://x:99999/"}, "must be an address"),
        ({"url": "http://ann:secret@x/"}, "has a user name in it"),
        ({"url": URL, "fields": {"user": "${username}"}}, "no password would be checked"),
        ({"url": URL, "fields": {"password": "${password}"}}, "all logins would be the same user"),
        ({"url": URL, "fields": {"user": "${username} ${secret}"}}, "secret"),
        ({"url": URL, "headers": {"A b": "c"}}, "headers"),
        ({"url": URL, "headers": {"A": "c\r\nB: d"}}, "characters that no header has"),
        ({"url": URL, "timeout_ms": 5}, "timeout_ms"),
        ({"url": URL, "surprise": 1}, "surprise"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(said, why):
    with pytest.raises(ValidationError, match=why):
        HttpBackendSettings.model_validate({"kind": "http", **said})


SQL = "SELECT hash FROM users WHERE name = ${username}"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"query": SQL}, "needs dsn or dsn_env"),
        ({"query": SQL, "dsn": "sqlite:x", "dsn_env": "X"}, "one of them"),
        ({"query": "SELECT 1", "dsn": "sqlite:x"}, "all logins would be the same user"),
        ({"query": SQL + " AND p = ${password}", "dsn": "sqlite:x"}, "does not get the password"),
        ({"query": SQL + " AND p = 'a${clientid}'", "dsn": "sqlite:x"}, "no quotes around them"),
        ({"query": SQL + " AND p = ${secret}", "dsn": "sqlite:x"}, "secret"),
        ({"query": SQL, "dsn": "(hidden)"}, "is hidden"),
    ],
)
def test_queries_that_cannot_be_meant_are_refused(said, why):
    with pytest.raises(ValidationError, match=why):
        SqlBackendSettings.model_validate({"kind": "sql", **said})


def test_texts_stand_beside_placeholders():
    SqlBackendSettings(kind="sql", dsn="sqlite:x", query=SQL + " AND a = 'x' AND b = ${clientid} AND c = 'y'")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"url": "http://x", "base": "o=x"}, "url"),
        ({}, "needs user_dn, or base"),
        ({"base": "o=x", "user_dn": "uid=${username}"}, "one of them"),
        ({"user_dn": "uid=ann"}, "all logins would be the same user"),
        ({"user_dn": "uid=${password}"}, "password"),
        ({"base": "o=x", "filter": "(uid=${dn})"}, "dn"),
        ({"base": "o=x", "groups_filter": "(cn=all)"}, "groups_filter"),
        ({"base": "o=x", "url": "ldaps://x", "starttls": True}, "starttls"),
        ({"base": "o=x", "bind_dn": "cn=x"}, "go together"),
        ({"base": "o=x", "bind_password": "x"}, "go together"),
    ],
)
def test_directories_that_cannot_be_meant_are_refused(said, why):
    with pytest.raises(ValidationError, match=why):
        LdapBackendSettings.model_validate({"kind": "ldap", "url": "ldap://x", **said})


def test_kind_that_is_not_known_is_told():
    with pytest.raises(SettingsError, match=r"auth\.backends\.0 in x: kind must be one of http, sql"):
        check_settings({"auth": {"backends": [{"kind": "redis"}]}}, "x")


def test_templates_are_filled_with_what_is_said_and_not_twice():
    assert fill("${username}:${password}", {"username": "${password}", "password": "x"}) == "${password}:x"


def _with(**said):
    return GatewaySettings(auth=AuthSettings.model_validate({"backends": [{"kind": "http", "url": URL, **said}]}))


def test_secrets_are_neither_shown_nor_logged():
    before, after = _with(headers={"X-Key": "s3cret"}), _with(headers={"X-Key": "s3cret"}, cache_s=1)
    assert "s3cret" not in settings_text(before)
    assert "s3cret" in settings_text(before, with_secrets=True)
    assert "s3cret" not in repr(before)
    (change,) = find_changes(before, after)
    assert "s3cret" not in f"{change.before}{change.after}"
    assert "cache_s=1" in change.after


def test_another_place_is_another_back_end_and_another_limit_or_key_is_not():
    first = _with().auth.backends[0]
    assert first.identity() == _with(cache_s=1, timeout_ms=10, headers={"A": "b"}).auth.backends[0].identity()
    assert first.identity() != _with(url="http://x/").auth.backends[0].identity()


def test_mistake_is_told_with_its_place():
    tree = {"auth": {"backends": [{"kind": "http", "url": URL, "timeout": 1}]}}
    with pytest.raises(SettingsError, match=r"auth\.backends\.0\.timeout in x; did you mean .*timeout_ms"):
        check_settings(tree, "x")


def test_back_ends_of_each_kind_are_printed_as_a_file_that_is_read_back():
    backends = [
        {
            "kind": "http",
            "url": URL,
            "headers": {"X-Key": "s3cret"},
            "fields": {"u": "${username}", "p": "${password}"},
        },
        {"kind": "sql", "dsn": "postgresql://u:s3cret@h/d", "query": SQL, "groups": ["a"]},
        {"kind": "ldap", "url": "ldap://x", "base": "o=x", "bind_dn": "cn=x", "bind_password": "s3cret"},
        {"kind": "amqtt", "plugins": {"a.b.C": {"key": "s3cret", "list": [1, "x"], "inner": {"y": True}}}},
    ]
    settings = GatewaySettings(auth=AuthSettings.model_validate({"backends": backends}))
    again = check_settings(tomllib.loads(settings_text(settings, with_secrets=True)), "x")
    assert again.auth.backends == settings.auth.backends
    assert "s3cret" not in settings_text(settings)
    assert "s3cret" not in f"{settings!r} {[*map(str, settings.auth.backends)]}"
    with pytest.raises(SettingsError):
        check_settings(tomllib.loads(settings_text(settings)), "x")
