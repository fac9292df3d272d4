"""Settings as a TOML file that `--config` takes, with secrets hidden unless they are asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from gateway.settings.models import GatewaySettings
from gateway.settings.secret import HIDDEN, is_secret

HIDDEN_HEAD = f"# Secrets are {HIDDEN}: lmq config show --secrets prints them.\n\n"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def settings_text(settings: GatewaySettings, *, with_secrets: bool = False) -> str:
    """Return all settings; what is not set, and has no value that says so, stands in a comment."""
    text = "\n".join(_table("", settings_table(settings, with_secrets=with_secrets))).lstrip("\n") + "\n"
    return text if with_secrets or HIDDEN not in text else HIDDEN_HEAD + text


def settings_table(model: BaseModel, *, with_secrets: bool = False) -> dict[str, Any]:
    """Return all settings as tables in tables, of what TOML and JSON have; None is what is not set."""
    return {
        name: HIDDEN
        if is_secret(field) and not with_secrets and getattr(model, name)
        else _plain(getattr(model, name), with_secrets=with_secrets)
        for name, field in type(model).model_fields.items()
    }


def _plain(value: object, *, with_secrets: bool) -> object:
    if isinstance(value, BaseModel):
        return settings_table(value, with_secrets=with_secrets)
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, with_secrets=with_secrets) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, with_secrets=with_secrets) for inner in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _table(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table: its values first, then the tables in it."""
    values = {name: value for name, value in table.items() if not isinstance(value, Mapping)}
    if path and values:
        yield f"\n[{path}]"
    for name, value in values.items():
        yield f"# {toml_key(name)} is not set" if value is None else f"{toml_key(name)} = {toml_value(value)}"
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _table(f"{path}.{toml_key(name)}" if path else toml_key(name), value)


def toml_key(name: str) -> str:
    """Return a key, in quotes where it has to be."""
    return name if _BARE_KEY.fullmatch(name) else _string(name)


def toml_value(value: object) -> str:
    """Return a value on one line; of tables what is None is left out."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        entries = [f"{toml_key(name)} = {toml_value(inner)}" for name, inner in value.items() if inner is not None]
        return f"{{ {', '.join(entries)} }}"
    return _string(str(value))


def _string(text: str) -> str:
    """Return a basic string: JSON's escapes are TOML's too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
