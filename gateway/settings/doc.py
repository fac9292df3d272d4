"""Makes docs/settings.md from the settings models and the comments beside their fields."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.settings.backends import KINDS as BACKEND_KINDS
from gateway.settings.bridges import BridgeSettings, BridgeTlsSettings, BridgeTopicSettings
from gateway.settings.changes import takes_effect
from gateway.settings.listen import CertificateSettings, MqttListenSettings, TlsSettings
from gateway.settings.models import GatewaySettings, UserSettings
from gateway.settings.rules import RuleSettings
from gateway.settings.topic_rules import AutoSubscription, RewriteRule

HEAD = """# Settings

<!-- Made by `lmq config doc`; a test keeps it equal to the models. -->

Settings come from four places, and a later one overrides an earlier one: defaults, the TOML file
(`lmq serve --config FILE` or `LMQ_CONFIG`), the environment, flags. An unknown name is refused, and the message
suggests the nearest known one.

- `lmq config check` reads the settings as `serve` does, and reports what is wrong.
- `lmq config show` prints the result as a file for `--config`. Password hashes are shown as `(hidden)`, which is
  refused when it is read; with `--secrets` they are printed, and the file can be used as it is. With `--admin` or
  `lmq --url` it prints the settings in force at that gateway.
- In the file, `mqtt.listen` is `listen` under `[mqtt]`; in the environment it is `LMQ_MQTT__LISTEN`.
- The environment does not distinguish capitals: give a user called `Alice` there as JSON,
  `LMQ_AUTH__USERS='{"Alice": {...}}'`.
- On SIGHUP a running gateway reads all of it again ([more](operations.md#settings-that-are-read-again)). The column
  "after SIGHUP" says for what a new value counts: for everything at once, for new connections or sessions, or only
  from the next start on.

Sections:

- **The gateway**: [`gateway`](#gateway) · [`store`](#store) · [`cache`](#cache) · [`limits`](#limits) ·
  [`limits.address`](#limitsaddress) · [`log`](#log) · [`audit`](#audit) · [`events`](#events) ·
  [`telemetry`](#telemetry)
- **Doors**: [`mqtt`](#mqtt) · [`amqp`](#amqp) · [`rocketmq`](#rocketmq) · [`admin`](#admin) ·
  [addresses and TLS](#several-addresses-and-tls) · [`mqtt.rewrite`](#mqttrewrite) ·
  [`mqtt.auto_subscribe`](#mqttauto_subscribe)
- **Who may come in**: [`auth`](#auth) · [users](#authusersname) · [rules](#authrules) · [`auth.jwt`](#authjwt) ·
  [`auth.penalty`](#authpenalty) · [`auth.user_limits`](#authuser_limits) ·
  back ends: [http](#authbackends-kind-http), [sql](#authbackends-kind-sql), [ldap](#authbackends-kind-ldap),
  [amqtt](#authbackends-kind-amqtt)
- **Bridges**: [`bridges.NAME`](#bridgesname)
"""
LISTEN_HEAD = """## Several addresses, and TLS

The `listen` of MQTT, AMQP and admin, and `namesrv` and `broker` of RocketMQ, is one address as text, `off`, or a list.
A list holds addresses as text, and tables:

```toml
[mqtt]
listen = [
    "127.0.0.1:1883",
    { address = "0.0.0.0:8883", tls = { certificate = "/etc/lmq/server.pem", key = "/etc/lmq/server.key" } },
]
```

In the environment a list is JSON: `LMQ_MQTT__LISTEN='["127.0.0.1:1883", {"address": "0.0.0.0:8883", ...}]'`. More on
TLS: [operations](operations.md#tls).
"""
COLUMNS = "| setting | default | values | after SIGHUP | meaning |\n|---|---|---|---|---|"
KINDS: dict[object, str] = {
    bool: "true or false",
    int: "number",
    float: "number",
    Path: "path",
    NoneType: "none",
    dict: "table",
    tuple: "list",
    TlsSettings: "table",
    BridgeTlsSettings: "table",
}
_FIELD_LINE = re.compile(r"^\s{4}(\w+): .*?(?:  # (.*))?$")


def settings_page() -> str:
    """Return the text of docs/settings.md."""
    parts = [
        HEAD,
        *_blocks(GatewaySettings, "", "gateway"),
        *_blocks(UserSettings, "auth.users.NAME.", "auth.users.NAME"),
        *_blocks(RuleSettings, "auth.rules.", "auth.rules"),
        *(
            text
            for kind, model in BACKEND_KINDS.items()
            for text in _blocks(model, "auth.backends.", f"auth.backends, kind {kind}")
        ),
        *_blocks(BridgeSettings, "bridges.NAME.", "bridges.NAME"),
        *_blocks(BridgeTopicSettings, "bridges.NAME.topics.", "bridges.NAME.topics"),
        *_blocks(BridgeTlsSettings, "bridges.NAME.tls.", "bridges.NAME.tls"),
        LISTEN_HEAD,
        *_blocks(MqttListenSettings, "listen.", "listen"),
        *_blocks(TlsSettings, "listen.tls.", "listen.tls"),
        *_blocks(CertificateSettings, "listen.tls.more_certificates.", "listen.tls.more_certificates"),
        *_blocks(RewriteRule, "mqtt.rewrite.", "mqtt.rewrite"),
        *_blocks(AutoSubscription, "mqtt.auto_subscribe.", "mqtt.auto_subscribe"),
    ]
    return "\n".join(parts)


def _blocks(model: type[BaseModel], prefix: str, title: str) -> Iterator[str]:
    rows = [
        _row(prefix + name, field, _comments(model).get(name, ""))
        for name, field in model.model_fields.items()
        if _block(field) is None
    ]
    if rows:
        head = f"## {title}\n\n{inspect.getdoc(model)}\n\n{COLUMNS}"
        yield "\n".join([head, *rows, ""])
    for name, field in model.model_fields.items():
        inner = _block(field)
        if inner is not None:
            yield from _blocks(inner, f"{prefix}{name}.", f"{prefix}{name}")


def _block(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _row(path: str, field: FieldInfo, meaning: str) -> str:
    if field.is_required():
        shown = "required"
    else:
        default = field.get_default(call_default_factory=True)
        shown = "none" if default is None else f"`{str(default).lower() if isinstance(default, bool) else default}`"
    return f"| `{path}` | {shown} | {_values(field)} | {takes_effect(path)} | {meaning.replace('|', '/')} |"


def _values(field: FieldInfo) -> str:
    bounds = [_bound(rule) for rule in field.metadata]
    return ", ".join([_kind(field.annotation), *(text for text in bounds if text)])


def _kind(kind: object) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in get_args(kind))
    if origin is Annotated:
        base, *rules = get_args(kind)
        return ", ".join([_kind(base), *filter(None, map(_bound, _rules(rules)))])
    if origin in {Union, UnionType}:
        return " or ".join(_kind(part) for part in get_args(kind))
    return KINDS.get(origin or kind, "text")


def _rules(rules: list[object]) -> list[object]:
    """Return the single rules of a type, those that stand in a Field too."""
    return [inner for rule in rules for inner in (rule.metadata if isinstance(rule, FieldInfo) else [rule])]


def _bound(rule: object) -> str:
    signs = (
        ("ge", "at least"),
        ("gt", "more than"),
        ("le", "at most"),
        ("lt", "less than"),
        ("multiple_of", "multiple of"),
    )
    return ", ".join(f"{text} {getattr(rule, name)}" for name, text in signs if getattr(rule, name, None) is not None)


def _comments(model: type[BaseModel]) -> dict[str, str]:
    """Return the comment that stands beside or, where there is none, above each field, inherited ones too."""
    found: dict[str, str] = {}
    above: list[str] = []
    models = [kind for kind in reversed(model.__mro__) if issubclass(kind, BaseModel) and kind is not BaseModel]
    for line in "\n".join(map(inspect.getsource, models)).splitlines():
        match = _FIELD_LINE.match(line)
        if match:
            found[match[1]] = match[2] or " ".join(above)
            above = []
        elif line.strip().startswith("#"):
            above.append(line.strip().lstrip("# "))
    return found
