"""Reads the settings once: defaults, then a TOML file, then the environment (`LMQ_MQTT__LISTEN`), then flags.

What cannot be used is told in one line, with the source that says it and the name that was probably meant.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError, create_model
from pydantic_settings import BaseSettings
from pydantic_settings.sources import EnvSettingsSource

from gateway.plain_errors import Wrong, tell_wrong
from gateway.settings.backends import KIND_TAGS, KINDS
from gateway.settings.close_names import find_close_name
from gateway.settings.listen import LISTED, TAGS
from gateway.settings.models import GatewaySettings, SettingsError, UserSettings, walk_settings
from gateway.settings.rules import RuleSettings
from gateway.settings.tree import holds, merge

ENV_PREFIX = "LMQ_"
_IN_LIST = re.compile(r".*?\.\d+\.")
_OF_USER = re.compile(r"auth\.users\.[^.]*\.")
_OF_RULE = re.compile(r"auth\.rules\.\d+\.")
_OF_BACKEND = re.compile(r"auth\.backends\.\d+\.")
# Variables with the prefix that are no settings: the build's, the way to the file, and those of tests and tools.
NOT_SETTINGS = (
    "LMQ_COMPILE",
    "LMQ_CONFIG",
    "LMQ_TOKEN",
    "LMQ_OFFICIAL_",
    "LMQ_REAL_JAVA",
    "LMQ_TEST_",
    "LMQ_BENCH_",
    "LMQ_CLI_",
    "LMQ_DEMO_",
)
_LISTEN = "must be HOST:PORT (port 0 picks one), off, or a list of addresses"
_WORDS = {
    **dict.fromkeys(("model_type", "dict_type"), "must be a table of settings"),
    "union_tag_invalid": f"kind must be one of {', '.join(KINDS)}",
}


def load_settings(config: Path | None, flags: Mapping[str, Any]) -> GatewaySettings:
    """Return the settings of this process.

    Args:
        config: The TOML file, or None for none.
        flags: What the command line says, as a tree of the same shape as the models.

    Raises:
        SettingsError: A source cannot be read, names an unknown setting, or a value is out of its range.
    """
    layers = [("the command line", flags), ("the environment", _read_environment()), (str(config), _read_file(config))]
    merged: dict[str, Any] = {}
    for _, layer in reversed(layers):
        merged = merge(merged, layer)
    return _validate(merged, layers)


def check_settings(tree: Mapping[str, Any], source: str) -> GatewaySettings:
    """Return the settings of a tree, which came from `source`.

    Raises:
        SettingsError: A value is out of its range, or two do not go together.
    """
    return _validate(tree, [(source, tree)])


def _validate(tree: Mapping[str, Any], layers: list[tuple[str, Mapping[str, Any]]]) -> GatewaySettings:
    try:
        return GatewaySettings.model_validate(tree)
    except ValidationError as error:
        lines = [_describe(wrong, layers) for wrong in tell_wrong(error.errors())]
        raise SettingsError("; ".join(lines)) from error


def _read_file(config: Path | None) -> dict[str, Any]:
    if config is None:
        return {}
    try:
        return tomllib.loads(config.read_text(encoding="utf-8-sig"))  # some editors begin a file with U+FEFF
    except OSError as error:
        raise SettingsError(f"cannot read {config}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{config} is not TOML: {error}") from error


def _read_environment() -> dict[str, Any]:
    blocks_of_strings: dict[str, Any] = {
        name: (field.annotation, field) for name, field in GatewaySettings.model_fields.items()
    }
    reader = create_model("Environment", __base__=BaseSettings, **blocks_of_strings)
    source = EnvSettingsSource(reader, env_prefix=ENV_PREFIX, env_nested_delimiter="__")
    settings = {variable.lower(): text for variable, text in os.environ.items() if _is_setting(variable)}
    for variable, text in settings.items():
        source.env_vars = {variable: text}
        try:
            source()  # by itself first, because what is said of all of them does not name the one
        except ValueError as error:
            said = f"wrong setting {variable.upper()} in the environment: not JSON: {error.__cause__}"
            raise SettingsError(said) from error
    source.env_vars = settings
    return source()


def _is_setting(variable: str) -> bool:
    """Return whether an environment variable is for the gateway.

    Raises:
        SettingsError: It has the prefix and names no setting.
    """
    upper = variable.upper()
    if not upper.startswith(ENV_PREFIX) or upper.startswith(NOT_SETTINGS):
        return False
    name = upper.removeprefix(ENV_PREFIX).lower()
    if name.partition("__")[0] not in GatewaySettings.model_fields:
        hint = _hint(name.replace("__", "."), as_variable=True)
        raise SettingsError(f"unknown setting {variable} in the environment{hint}")
    return True


def _describe(wrong: Wrong, layers: list[tuple[str, Mapping[str, Any]]]) -> str:
    is_listen = wrong.kind == "tuple_type" and not set(TAGS).isdisjoint(wrong.place)
    loc = tuple(part for part in wrong.place if part not in TAGS and part not in KIND_TAGS)
    path = ".".join(str(part) for part in loc)
    ends = range(len(loc), 0, -1)  # a part that is missing is the fault of the source that has the others
    source = next((name for end in ends for name, layer in layers if holds(layer, loc[:end])), "the settings")
    if wrong.kind == "extra_forbidden":
        return f"unknown setting {path} in {source}{_hint(path)}"
    told = f"{wrong.text}, and not {wrong.value}" if wrong.value else wrong.text
    said = _LISTEN if is_listen else _WORDS.get(wrong.kind, told)
    return f"wrong setting {path} in {source}: {said}" if path else f"wrong settings: {said}"


def _hint(path: str, *, as_variable: bool = False) -> str:
    if path.startswith("auth.users.") and path.endswith(".password"):
        return "; passwords are not kept: give password_hash, as lmq hash-password prints it, or password_env"
    close = find_close_name(path, _find_known(path))
    if close is None:
        return ""
    name = ENV_PREFIX + close.replace(".", "__").upper() if as_variable else close
    return f"; did you mean {name}?"


def _find_known(path: str) -> list[str]:
    """Return the names of settings that there are beside an unknown one."""
    models: tuple[tuple[re.Pattern[str], type[BaseModel]], ...] = ((_OF_USER, UserSettings), (_OF_RULE, RuleSettings))
    for pattern, model in models:
        found = pattern.match(path)
        if found is not None:
            return [found[0] + name for name in model.model_fields]
    of_backend = _OF_BACKEND.match(path)
    if of_backend is not None:
        return [of_backend[0] + name for kind in KINDS.values() for name in kind.model_fields]
    of_listed = _IN_LIST.match(path)
    if of_listed:
        return [f"{of_listed[0]}{name}" for name in LISTED]
    return [name for name, _ in walk_settings(GatewaySettings)]
