"""Says in plain sentences what is wrong with a value, where pydantic's sentences are for programmers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_WORDS = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "must be an object of names and values"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "string_type": "must be a text",
    "path_type": "must name a folder or a file, as text",
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "json_invalid": "is not JSON",
}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
_VALUE_ERROR = "Value error, "


_TELLING = {
    "literal_error", "multiple_of", "int_parsing", "int_from_float", "float_parsing", "bool_parsing",
    "greater_than", "greater_than_equal", "less_than", "less_than_equal",
}  # fmt: skip
_VALUE_CHARACTERS_MAX = 64  # chosen: of a value, which the writer knows; the sentence stays on a line


class Wrong(NamedTuple):
    """One thing that is wrong: where, pydantic's word for what, the sentence, and the value if that helps.

    The value is told of numbers, switches and words of a list alone: none of them is a password.
    """

    place: tuple[int | str, ...]
    kind: str
    text: str
    value: str = ""


def tell_wrong(errors: Sequence[ErrorDetails]) -> list[Wrong]:
    """Return what is wrong, without what only follows from another: a list is not too short for a bad part of it."""
    places = [error["loc"] for error in errors]
    return [
        Wrong(error["loc"], error["type"], _say(error), _tell_value(error))
        for error in errors
        if error["type"] != "too_short" or not any(_is_below(place, error["loc"]) for place in places)
    ]


def tell_first(error: ValueError) -> str:
    """Return where the first thing is wrong that pydantic refused, and what; of another error its text."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = tell_wrong(error.errors())[0]
    return f"{'.'.join(map(str, first.place))} {first.text}".strip()


def _is_below(place: tuple[int | str, ...], above: tuple[int | str, ...]) -> bool:
    return len(place) > len(above) and place[: len(above)] == above


def _tell_value(error: ErrorDetails) -> str:
    value = error.get("input")
    if error["type"] not in _TELLING or not isinstance(value, int | float | str):
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if len(text) <= _VALUE_CHARACTERS_MAX else text[:_VALUE_CHARACTERS_MAX] + "…"
    return repr(text) if isinstance(value, str) else text


def _say(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "literal_error":
        expected = str(context["expected"])
        return f"must be one of {expected}" if ", " in expected else f"must be {expected}"
    if kind == "string_pattern_mismatch":
        return f"must match {context['pattern']}"
    if kind == "multiple_of":
        return f"must be a multiple of {context['multiple_of']}"
    return _say_bound(kind, context) or error["msg"].removeprefix(_VALUE_ERROR)


def _say_bound(kind: str, context: Mapping[str, object]) -> str:
    """Return the sentence about a value that is too large or small, too long or short; empty: it is neither."""
    if kind in {"too_short", "too_long", "string_too_short", "string_too_long"}:
        what = "character" if kind.startswith("string") else "value"
        is_short = kind.endswith("short")
        count = context["min_length" if is_short else "max_length"]
        if is_short and count == 1:
            return "must not be empty"
        return f"must have {'at least' if is_short else 'at most'} {count} {what}{'' if count == 1 else 's'}"
    return next((f"must be {words} {context[name]}" for name, words in _BOUNDS.items() if name in context), "")
