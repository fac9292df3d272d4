"""An SQL92 filter as a program: one call says whether a message's properties meet it.

A condition is true, false, or unknown (None) where a property it asks for is not there. A text that is compared with a
number and is none ends the whole filter: it does not match.

Source: docs/protocols/rocketmq.md, "SQL filters".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from gateway.rocketmq.filters.sql_syntax import (
    AllOf,
    AnyOf,
    Equal,
    Literal,
    Negative,
    Node,
    Not,
    OneOf,
    Order,
    Part,
    Property,
    Value,
)

Properties = Mapping[str, str]
Program = Callable[[Properties], Value]
PART_COST = 16  # of looking for a text in another, in terms
LONG_MAX = 2**63  # Java's long

_LONG = re.compile(r"[+-]?[0-9]{1,40}")
_DOUBLE = re.compile(r"[+-]?(?:Infinity|(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,9})?[fFdD]?)")
_BLANKS = "".join(map(chr, range(0x21)))  # what Java takes from both ends of a number's text
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class NoMatchError(Exception):
    """The filter cannot be told of this message: a text is no number."""


def cost_of(node: Node) -> int:
    """Return how dear a filter is, in terms."""
    match node:
        case AllOf(of) | AnyOf(of):
            return sum(map(cost_of, of))
        case Order(_, left, right) | Equal(left, right):
            return 1 + cost_of(left) + cost_of(right)
        case Not(of) | Negative(of):
            return 1 + cost_of(of)
        case Part(_, of):
            return PART_COST + cost_of(of)
        case _:
            return 1


def compile_node(node: Node) -> Program:
    """Return the program of a value or a condition."""
    match node:
        case Negative(of):
            program = _negative(compile_node(of))
        case Not(of):
            program = _opposite(_condition(of))
        case AllOf(of):
            program = _all([_condition(one) for one in of], ends_on=False)
        case AnyOf(of):
            program = _all([_condition(one) for one in of], ends_on=True)
        case Order(sign, left, right):
            program = _order(_ORDERS[sign], compile_node(left), compile_node(right))
        case Equal(left, right):
            program = _equal(compile_node(left), compile_node(right))
        case OneOf(name, texts, is_wanted):
            program = _one_of(name, texts, is_wanted=is_wanted)
        case Part(where, of, text, is_wanted):
            program = _part(where, compile_node(of), text, is_wanted=is_wanted)
        case _:
            program = _value(node)
    return program


def meets(program: Program, properties: Properties) -> bool:
    """Return whether a message's properties meet the condition."""
    try:
        return program(properties) is True
    except NoMatchError:
        return False


def _condition(node: Node) -> Program:
    """Return the program of a condition; that of a property alone is false, as a text is no truth."""
    program = compile_node(node)
    if isinstance(node, Property):
        return lambda properties: None if program(properties) is None else False
    return program


def _value(node: Literal | Property) -> Program:
    if isinstance(node, Property):
        name = node.name
        return lambda properties: properties.get(name)
    value = node.value
    return lambda _properties: value


def _negative(of: Program) -> Program:
    def negative(properties: Properties) -> Value:
        value = of(properties)
        return -value if isinstance(value, int | float) and not isinstance(value, bool) else None

    return negative


def _opposite(of: Program) -> Program:
    def opposite(properties: Properties) -> Value:
        value = of(properties)
        return None if value is None else not value

    return opposite


def _all(programs: list[Program], *, ends_on: bool) -> Program:
    """Return the program of conditions joined by AND, or by OR: the first that is `ends_on` tells the outcome."""

    def joined(properties: Properties) -> Value:
        is_unknown = False
        for program in programs:
            value = program(properties)
            if value is ends_on:
                return ends_on
            is_unknown = is_unknown or value is None
        return None if is_unknown else not ends_on

    return joined


def _order(compares: Callable[[Any, Any], bool], left: Program, right: Program) -> Program:
    def order(properties: Properties) -> Value:
        one = left(properties)
        if one is None:
            return None
        other = right(properties)
        if other is None:
            return None
        if isinstance(one, str) and isinstance(other, str):
            one, other = to_double(one), to_double(other)
        pair = _alike(one, other)
        return False if pair is None else compares(*pair)

    return order


def _equal(left: Program, right: Program) -> Program:
    def equal(properties: Properties) -> Value:
        one, other = left(properties), right(properties)
        if one is None and other is not None:
            return None
        if one is None or other is None:
            return one is other
        pair = _alike(one, other)
        return pair is not None and pair[0] == pair[1]

    return equal


def _one_of(name: str, texts: frozenset[str], *, is_wanted: bool) -> Program:
    def one_of(properties: Properties) -> Value:
        value = properties.get(name)
        return None if value is None else (value in texts) is is_wanted

    return one_of


def _part(where: str, of: Program, text: str, *, is_wanted: bool) -> Program:
    def part(properties: Properties) -> Value:
        value = of(properties)
        if not isinstance(value, str) or not text:
            return False  # also where it is not wanted, as official brokers have it
        if where == "CONTAINS":
            found = text in value
        else:
            found = value.startswith(text) if where == "STARTSWITH" else value.endswith(text)
        return found is is_wanted

    return part


def _alike(one: Value, other: Value) -> tuple[Value, Value] | None:
    """Return two values in a form in which they can be compared, None for kinds that never are the same.

    Raises:
        NoMatchError: One is a text that is to be a number, and is none.
    """
    if isinstance(one, str) and not isinstance(other, str):
        one = _read_like(one, other)
    elif isinstance(other, str) and not isinstance(one, str):
        other = _read_like(other, one)
    return None if isinstance(one, bool) is not isinstance(other, bool) else (one, other)


def _read_like(text: str, value: Value) -> Value:
    """Return the value of a text, of the kind that `value` has."""
    if isinstance(value, bool):
        return text.lower() == "true"
    return to_double(text) if isinstance(value, float) else to_long(text)


def to_long(text: str) -> int:
    """Return the number of 64 bits that a text is.

    Raises:
        NoMatchError: It is none.
    """
    number = int(text) if _LONG.fullmatch(text) else LONG_MAX
    if not -LONG_MAX <= number < LONG_MAX:
        raise NoMatchError
    return number


def to_double(text: str) -> float:
    """Return the floating number that a text is.

    Raises:
        NoMatchError: It is none.
    """
    text = text.strip(_BLANKS)
    if _DOUBLE.fullmatch(text) is None:
        raise NoMatchError
    return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
