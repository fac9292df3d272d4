"""Settings of authentication back ends: servers elsewhere that know users, asked after the users of the gateway."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag, model_validator

from gateway.address import check_url
from gateway.secret_settings import Secret, is_secret
from gateway.way_names import ALL_WAYS

PLACEHOLDERS = ("username", "password", "clientid", "peerhost", "protocol")
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
USER = frozenset(("username",))
SQLITE = "sqlite:"
POSTGRES = ("postgresql://", "postgres://")
_TUNING = {"name", "timeout_ms", "requests_max", "cache_s", "cache_refused_s"}


def _check_template(text: str) -> str:
    unknown = [name for name in _PLACEHOLDER.findall(text) if name not in PLACEHOLDERS]
    if unknown:
        raise ValueError(f"${{{unknown[0]}}} is not known here: there are {', '.join(PLACEHOLDERS)}")
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

    # what the authenticators of a listener call it; empty: its kind
    name: Annotated[str, Field(max_length=64, pattern="^([a-z][a-z0-9_-]*)?$"), AfterValidator(_check_way)] = ""
    timeout_ms: Annotated[int, Field(ge=10, le=60_000)] = 5_000  # for one answer; then the login is refused
    requests_max: Annotated[int, Field(ge=1, le=256)] = 16  # questions under way at once; more wait for their turn
    cache_s: Annotated[int, Field(ge=0, le=86_400)] = 60  # so long a login that was let in is let in again unasked
    cache_refused_s: Annotated[int, Field(ge=0, le=3_600)] = 5  # so long a login that was refused is refused unasked
    groups: tuple[GroupName, ...] = ()  # of everybody that it lets in, beside those that it says
    admin_tags: bool = False  # groups called as the tags of `auth.users.NAME.tags` let in at the admin API

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
    """A web server that is asked about each login, as EMQX and RabbitMQ ask one."""

    kind: Literal["http"]
    url: Url  # where it is asked
    method: Literal["post", "get"] = "post"  # a get has the fields in its address
    encoding: Literal["form", "json"] = "form"  # how the body of a post is written
    # what it is told: names, and texts with `${username}`, `${password}`, `${clientid}`, `${peerhost}`, `${protocol}`
    fields: dict[str, Template] = {
        "username": "${username}",
        "password": "${password}",
        "client_id": "${clientid}",
    }
    # more headers of each request; not shown, since one may be a key
    headers: Annotated[dict[HeaderName, HeaderText], Field(json_schema_extra={"secret": True}, repr=False)] = {}
    authorization_env: str = ""  # the environment variable that holds the header Authorization
    ca: Path | None = None  # a PEM file of authorities for its certificate; none: those that this machine trusts

    @model_validator(mode="after")
    def _check_fields(self) -> HttpBackendSettings:
        if not any("${username}" in template for template in self.fields.values()):
            raise ValueError("fields do not say ${username}: everybody would be the same user")
        if not any("${password}" in template for template in self.fields.values()):
            raise ValueError("fields do not say ${password}: no password would be checked")
        return self


class SqlBackendSettings(BackendSettings, frozen=True, extra="forbid"):
    """A table of users in a database."""

    kind: Literal["sql"]
    dsn: Secret = ""  # which database: `sqlite:/etc/lmq/users.db`, or `postgresql://user:password@host/database`
    dsn_env: str = ""  # the environment variable that holds it
    # what is asked, with `${username}`, `${clientid}`, `${peerhost}`, `${protocol}` as values, never as text of the
    # query. The first column is the hash of the password, a column `groups` has the groups; no row: not known here
    query: Template

    @model_validator(mode="after")
    def _check_query(self) -> SqlBackendSettings:
        if bool(self.dsn) == bool(self.dsn_env):
            raise ValueError("needs dsn or dsn_env, one of them")
        if "${username}" not in self.query:
            raise ValueError("the query does not ask for ${username}: everybody would be the same user")
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

    kind: Literal["ldap"]
    url: LdapUrl  # ldap://HOST:PORT, or ldaps://HOST:PORT
    starttls: bool = False  # begin TLS on a connection of ldap://
    ca: Path | None = None  # a PEM file of authorities for its certificate; none: those that this machine trusts
    user_dn: str = ""  # the name of a user's entry: uid=${username},ou=people,dc=example,dc=com
    bind_dn: str = ""  # the entry that searches; empty: an anonymous search
    bind_password: Secret = ""  # of that entry
    bind_password_env: str = ""  # the environment variable that holds it
    base: str = ""  # below which entry users are searched: ou=people,dc=example,dc=com
    filter: str = "(uid=${username})"  # finds a user's entry
    groups_attribute: str = ""  # of a user's entry, such as memberOf; of names of entries the value in front counts
    groups_base: str = ""  # below which entry groups are searched
    groups_filter: str = "(member=${dn})"  # finds those of `${dn}`, the user's entry, or `${username}`
    groups_name: Annotated[str, Field(min_length=1)] = "cn"  # the attribute that a group is called by

    @model_validator(mode="after")
    def _check_ways(self) -> LdapBackendSettings:
        if bool(self.user_dn) == bool(self.base):
            raise ValueError("needs user_dn, or base to search below: one of them")
        for name, known in (("user_dn", USER), ("filter", USER), ("groups_filter", {"dn", *USER})):
            said = {part for part, is_name in split_template(getattr(self, name)) if is_name}
            if said - known:
                raise ValueError(f"{name}: ${{{min(said - known)}}} is not known here")
            if not said and getattr(self, name):
                raise ValueError(f"{name} does not ask for a user: everybody would be the same")
        if self.starttls and self.url.startswith("ldaps:"):
            raise ValueError("starttls is for ldap://, and ldaps:// has TLS from the start")
        if bool(self.bind_dn) != bool(self.bind_password or self.bind_password_env):
            raise ValueError("bind_dn and its password, by bind_password or bind_password_env, go together")
        return self


class AmqttBackendSettings(BackendSettings, frozen=True, extra="forbid"):
    """Plugins that were written for amqtt, of which each that says anything has to say yes."""

    kind: Literal["amqtt"]
    # by the path of each, MODULE.CLASS, its settings as amqtt has them; not shown, since one may be a key
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
