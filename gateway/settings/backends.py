"""Settings of authentication back ends: servers elsewhere that know users, asked after the users of the gateway."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag, model_validator

from gateway.address import check_url
from gateway.settings.secret import Secret, is_secret
from gateway.settings.way_names import ALL_WAYS

PLACEHOLDERS = ("username", "password", "clientid", "peerhost", "protocol")
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
USER = frozenset(("username",))
SQLITE = "sqlite:"
POSTGRES = ("postgresql://", "postgres://")
_TUNING = {"name", "timeout_ms", "requests_max", "cache_s", "cache_refused_s"}


def _check_template(text: str) -> str:
    unknown = [name for name in _PLACEHOLDER.findall(text) if name not in PLACEHOLDERS]
    if unknown:
        raise ValueError(f"${{{unknown[0]}}} is unknown; known are {', '.join(PLACEHOLDERS)}")
    return text


def _check_header(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise ValueError("has characters that no header has")
    return text


def _check_way(name: str) -> str:
    if name in ALL_WAYS:
        raise ValueError(f"{name} is another way in: the names {', '.join(ALL_WAYS)} are taken")
    return name


def split_template(text: str) -> list[tuple[str, bool]]:
    """Return the parts of a template, and of each whether it is the name of a placeholder."""
    return [(part, number % 2 == 1) for number, part in enumerate(_PLACEHOLDER.split(text))]


def fill(template: str, values: dict[str, str]) -> str:
    """Return a template with what stands for each placeholder."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


GroupName = Annotated[str, Field(min_length=1, max_length=255)]
LdapUrl = Annotated[str, Field(pattern=r"^ldaps?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?$")]
Url = Annotated[str, AfterValidator(check_url)]
Template = Annotated[str, AfterValidator(_check_template)]
PluginPath = Annotated[str, Field(pattern=r"^\w+(\.\w+)+$")]
HeaderName = Annotated[str, Field(pattern="^[A-Za-z0-9-]+$")]
HeaderText = Annotated[str, AfterValidator(_check_header)]


class BackendSettings(BaseModel, frozen=True, extra="forbid"):
    """What each back end has, of whatever kind."""

    # name in the `authenticators` of a listener; empty: its kind
    name: Annotated[str, Field(max_length=64, pattern="^([a-z][a-z0-9_-]*)?$"), AfterValidator(_check_way)] = ""
    timeout_ms: Annotated[int, Field(ge=10, le=60_000)] = 5_000  # time for one answer; then the login is refused
    requests_max: Annotated[int, Field(ge=1, le=256)] = 16  # requests under way at once; more wait
    cache_s: Annotated[int, Field(ge=0, le=86_400)] = 60  # time for which an accepted login is remembered
    cache_refused_s: Annotated[int, Field(ge=0, le=3_600)] = 5  # time for which a refused login is remembered
    groups: tuple[GroupName, ...] = ()  # groups of all users that it lets in, beside those of its answer
    admin_tags: bool = False  # groups with the names of tags (`auth.users.NAME.tags`) count as tags at the admin API

    @property
    def called(self) -> str:
        """What listeners call it."""
        return self.name or str(getattr(self, "kind", ""))

    def identity(self) -> str:
        """Return what is another one where the back end is; without secrets, and what only tunes it."""
        hidden = {name for name, field in type(self).model_fields.items() if is_secret(field)}
        return self.model_dump_json(exclude=hidden | _TUNING)

    def __str__(self) -> str:
        """Return what is set, in one line, without secrets."""
        hidden = {name for name, field in type(self).model_fields.items() if is_secret(field)}
        said: dict[str, Any] = self.model_dump(exclude_defaults=True, exclude=hidden)
        return " ".join(f"{name}={value}" for name, value in said.items())


class HttpBackendSettings(BackendSettings, frozen=True, extra="forbid"):
    """A web server that decides about each login, in the forms of EMQX and RabbitMQ."""

    kind: Literal["http"]  # kind of the back end
    url: Url  # where it is asked
    method: Literal["post", "get"] = "post"  # method of the request; a get has the fields in its address
    encoding: Literal["form", "json"] = "form"  # encoding of the body of a post
    # fields of the request: names, and texts with `${username}`, `${password}`, `${clientid}`, `${peerhost}`,
    # `${protocol}`
    fields: dict[str, Template] = {
        "username": "${username}",
        "password": "${password}",
        "client_id": "${clientid}",
    }
    # more headers of each request; never shown, because one may be a key
    headers: Annotated[dict[HeaderName, HeaderText], Field(json_schema_extra={"secret": True}, repr=False)] = {}
    authorization_env: str = ""  # the environment variable that holds the header Authorization
    ca: Path | None = None  # PEM file of the authorities for its certificate; none: those that this machine trusts

    @model_validator(mode="after")
    def _check_fields(self) -> HttpBackendSettings:
        if not any("${username}" in template for template in self.fields.values()):
            raise ValueError("fields lack ${username}: all logins would be the same user")
        if not any("${password}" in template for template in self.fields.values()):
            raise ValueError("fields do not say ${password}: no password would be checked")
        return self


class SqlBackendSettings(BackendSettings, frozen=True, extra="forbid"):
    """A table of users in a database."""

    kind: Literal["sql"]  # kind of the back end
    dsn: Secret = ""  # the database: `sqlite:/etc/lmq/users.db`, or `postgresql://user:password@host/database`
    dsn_env: str = ""  # environment variable that holds the dsn
    # query with `${username}`, `${clientid}`, `${peerhost}`, `${protocol}` as values, never as its text. First column:
    # hash of the password; column `groups`: the groups; no row: not known here
    query: Template

    @model_validator(mode="after")
    def _check_query(self) -> SqlBackendSettings:
        if bool(self.dsn) == bool(self.dsn_env):
            raise ValueError("needs dsn or dsn_env, one of them")
        if "${username}" not in self.query:
            raise ValueError("the query lacks ${username}: all logins would be the same user")
        if "${password}" in self.query:
            raise ValueError("the query does not get the password: select its hash, it is checked here")
        before = ""
        for part, is_name in split_template(self.query):
            if is_name and before.count("'") % 2:
                raise ValueError("placeholders are values: no quotes around them")
            before += "" if is_name else part
        return self


class LdapBackendSettings(BackendSettings, frozen=True, extra="forbid"):
    """A directory; a user binds as `user_dn`, or as the entry that a search finds."""

    kind: Literal["ldap"]  # kind of the back end
    url: LdapUrl  # ldap://HOST:PORT, or ldaps://HOST:PORT
    starttls: bool = False  # begin TLS on a connection of ldap://
    ca: Path | None = None  # PEM file of the authorities for its certificate; none: those that this machine trusts
    user_dn: str = ""  # name of a user's entry, to bind as: uid=${username},ou=people,dc=example,dc=com
    bind_dn: str = ""  # the entry that searches; empty: an anonymous search
    bind_password: Secret = ""  # password of that entry
    bind_password_env: str = ""  # environment variable that holds that password
    base: str = ""  # entry below which users are searched: ou=people,dc=example,dc=com
    filter: str = "(uid=${username})"  # finds a user's entry
    # attribute of a user's entry that names groups, such as memberOf; of an entry's name the first value counts
    groups_attribute: str = ""
    groups_base: str = ""  # entry below which groups are searched
    groups_filter: str = "(member=${dn})"  # finds the groups of `${dn}`, the user's entry, or `${username}`
    groups_name: Annotated[str, Field(min_length=1)] = "cn"  # attribute with the name of a group

    @model_validator(mode="after")
    def _check_ways(self) -> LdapBackendSettings:
        if bool(self.user_dn) == bool(self.base):
            raise ValueError("needs user_dn, or base to search below: one of them")
        for name, known in (("user_dn", USER), ("filter", USER), ("groups_filter", {"dn", *USER})):
            said = {part for part, is_name in split_template(getattr(self, name)) if is_name}
            if said - known:
                raise ValueError(f"{name}: ${{{min(said - known)}}} is not known here")
            if not said and getattr(self, name):
                raise ValueError(f"{name} lacks a placeholder for the user: all logins would be the same user")
        if self.starttls and self.url.startswith("ldaps:"):
            raise ValueError("starttls is for ldap://, and ldaps:// has TLS from the start")
        if bool(self.bind_dn) != bool(self.bind_password or self.bind_password_env):
            raise ValueError("bind_dn and its password, by bind_password or bind_password_env, go together")
        return self


class AmqttBackendSettings(BackendSettings, frozen=True, extra="forbid"):
    """Plugins that were written for amqtt; each that answers must say yes."""

    kind: Literal["amqtt"]  # kind of the back end
    # settings of each plugin as in amqtt, by its path MODULE.CLASS; never shown, because one may be a key
    plugins: Annotated[
        dict[PluginPath, dict[str, Any]],
        Field(min_length=1, json_schema_extra={"secret": True}, repr=False),
    ]

    def identity(self) -> str:
        """Return which plugins they are."""
        return f"{super().identity()} {' '.join(self.plugins)}"


KINDS: dict[str, type[BackendSettings]] = {
    "http": HttpBackendSettings,
    "sql": SqlBackendSettings,
    "ldap": LdapBackendSettings,
    "amqtt": AmqttBackendSettings,
}
KIND_TAGS = tuple(f"kind-{kind}" for kind in KINDS)  # in pydantic's errors; no operator's words


def _find_kind(value: object) -> str:
    return f"kind-{value.get('kind') if isinstance(value, dict) else getattr(value, 'kind', None)}"


Backend = Annotated[
    Annotated[HttpBackendSettings, Tag("kind-http")]
    | Annotated[SqlBackendSettings, Tag("kind-sql")]
    | Annotated[LdapBackendSettings, Tag("kind-ldap")]
    | Annotated[AmqttBackendSettings, Tag("kind-amqtt")],
    Discriminator(_find_kind),
]
