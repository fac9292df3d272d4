"""Checks the arguments of producers and consumers at once, so that a mistake is told where it was made."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import TypeVar

StartT = TypeVar("StartT")

_TOPIC = re.compile(r"[%|a-zA-Z0-9_-]+")
_GROUP = re.compile(r"[%|a-zA-Z0-9_-]{1,255}")


def check_group(group: object) -> None:
    """Check the name of a group as RocketMQ's own clients do.

    Raises:
        ValueError: A broker would not take it.
    """
    if not isinstance(group, str) or not _GROUP.fullmatch(group):
        raise ValueError(f"group {group!r}: the name has 1 to 255 characters, which are letters, digits, % | _ or -")


def check_topic(topic: object) -> None:
    """Check the name of a topic that is consumed, which no broker would miss: it may be made later.

    Raises:
        TypeError: It is no text.
        ValueError: There can be no topic of that name.
    """
    check_is("topic", topic, str)
    assert isinstance(topic, str)
    if not _TOPIC.fullmatch(topic):
        raise ValueError(
            f"topic {topic!r}: a name is made of letters, digits, % | _ and -; mqtt_queue makes one of a filter"
        )


def check_start(name: str, start: StartT, words: tuple[str, ...], others: tuple[type, ...] = ()) -> StartT:
    """Return where reading is to begin, if it is known.

    Args:
        name: The argument's name.
        start: What was given for it.
        words: The words that are known.
        others: What else it may be.

    Raises:
        ValueError: It is none of that.
    """
    if start not in words and not isinstance(start, others):
        known = ", ".join([*(repr(word) for word in words), *(f"any {other.__name__}" for other in others)])
        raise ValueError(f"{name}={start!r} is not known; it is one of {known}")
    return start


def check_is(name: str, value: object, *kinds: type) -> None:
    """Check that an argument is of one of these types.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise TypeError(f"{name}={value!r} is of type {type(value).__name__}; it is to be of type {wanted}")


def check_count(name: str, value: object, least: int, most: int | None = None) -> None:
    """Check a whole number.

    Raises:
        TypeError: It is something else.
        ValueError: It is less than `least`, or more than `most`.
    """
    check_is(name, value, int)
    assert isinstance(value, int)
    if value < least or (most is not None and value > most):
        bounds = f"{least} or more" if most is None else f"{least} to {most}"
        raise ValueError(f"{name}={value}; it is to be {bounds}")


def check_seconds(name: str, value: object, *, may_be_none: bool = False) -> None:
    """Check a time in seconds, which is more than 0, or 0 where it `may_be_none`.

    Raises:
        TypeError: It is no number.
        ValueError: It is no such time.
    """
    check_is(name, value, int, float)
    assert isinstance(value, int | float)
    if not (0 < value < math.inf or (may_be_none and value == 0)):
        raise ValueError(f"{name}={value}; it is to be a number of seconds{' from 0 on' if may_be_none else ' over 0'}")


def check_async(name: str, function: object) -> None:
    """Check a function that is awaited. What cannot be seen here, as of a lambda, is seen when it is called.

    Raises:
        TypeError: It cannot be called, or is a `def` that is no `async def`.
    """
    if not callable(function):
        raise TypeError(f"{name}={function!r} cannot be called; it is to be an async def")
    called: object = function
    while isinstance(called, functools.partial):
        called = called.func
    code = getattr(called, "__code__", None)  # of a mock too
    if getattr(code, "co_flags", 0) & inspect.CO_COROUTINE:
        return
    if not isinstance(called, FunctionType | MethodType | type):
        called = getattr(type(called), "__call__", called)  # noqa: B004 - the method itself is wanted
    plain = called.__func__ if isinstance(called, MethodType) else called
    is_plain = isinstance(plain, FunctionType) and plain.__name__ != "<lambda>" and not hasattr(plain, "__wrapped__")
    if is_plain and not inspect.iscoroutinefunction(plain):
        raise TypeError(f"{name}={function!r} is a def; it is awaited, so it is to be an async def")


def check_awaitable(name: str, returned: object) -> None:
    """Check what a function returned that is awaited.

    Raises:
        TypeError: It cannot be awaited.
    """
    if not inspect.isawaitable(returned):
        raise TypeError(f"{name} returned {returned!r}, which cannot be awaited; it is to be an async def")


def check_takes(name: str, function: Callable[..., object], *arguments: str) -> None:
    """Check that a function can be called with these arguments, by their places; what tells nothing of it is let be.

    Raises:
        TypeError: It cannot.
    """
    if not callable(function):
        raise TypeError(f"{name}={function!r} cannot be called")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        given = ", ".join(arguments)
        raise TypeError(f"{name}={function!r} cannot be called with these arguments: ({given})") from None
