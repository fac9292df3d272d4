"""Settings as the text of a TOML file to be read and changed by hand: each user and each rule a table of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.settings.text import toml_key, toml_value


def settings_file(tables: Mapping[str, Any], remarks: list[str]) -> str:
    """Return the file; `remarks` stand before all else, each a comment."""
    lines = [f"# {remark}" for remark in remarks]
    return "\n".join([*lines, *_table("", tables)]) + "\n"


def _table(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    values = {name: value for name, value in table.items() if not (isinstance(value, Mapping) or _is_tables(value))}
    if path and values:
        yield f"\n[{path}]"
    for name, value in values.items():
        yield f"{toml_key(name)} = {_value(value)}"
    for name, value in table.items():
        inner = f"{path}.{toml_key(name)}" if path else toml_key(name)
        if isinstance(value, Mapping):
            yield from _table(inner, value)
        elif _is_tables(value):
            for one in value:
                yield f"\n[[{inner}]]"
                yield from (f"{toml_key(field)} = {toml_value(said)}" for field, said in one.items())


def _value(value: object) -> str:
    """Return a value; a list with tables has each of its entries on a line."""
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return "[\n" + "".join(f"    {toml_value(one)},\n" for one in value) + "]"
    return toml_value(value)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
