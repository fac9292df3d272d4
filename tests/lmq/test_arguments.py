from __future__ import annotations

import functools
import math
from datetime import UTC, datetime
from types import NoneType
from unittest.mock import AsyncMock

import pytest

from lmq.arguments import (
    check_async,
    check_awaitable,
    check_count,
    check_group,
    check_is,
    check_seconds,
    check_start,
    check_takes,
    check_topic,
)


async def heard(messages, context):
    return None


def unheard(messages, context):
    return None


class Handler:
    async def __call__(self, messages, context):
        return None

    async def method(self, messages, context):
        return None

    def plain(self, messages, context):
        return None


class PlainHandler:
    def __call__(self, messages, context):
        return None


@functools.wraps(heard)
def wrapped(messages, context):
    return heard(messages, context)


@pytest.mark.parametrize(
    "function",
    [
        heard,
        functools.partial(heard, context=1),
        Handler(),
        Handler().method,
        functools.partial(functools.partial(Handler()), 1),
        AsyncMock(),
        wrapped,
        lambda messages, context: heard(messages, context=context),
    ],
)
def test_what_may_be_awaited_is_taken(function):
    check_async("listener", function)


@pytest.mark.parametrize(
    "function", [unheard, functools.partial(unheard, context=1), PlainHandler(), Handler().plain, Handler.plain]
)
def test_a_def_that_is_not_async_is_refused(function):
    with pytest.raises(TypeError, match=r"^listener=.* is a def; it is awaited, so it is to be an async def$"):
        check_async("listener", function)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"^listener=5 cannot be called"):
        check_async("listener", 5)


@pytest.mark.parametrize(
    "function", [heard, Handler(), Handler().method, functools.partial(heard), print, len, AsyncMock()]
)
def test_a_function_that_takes_what_it_is_given_is_taken(function):
    check_takes("listener", function, *(("messages",) if function is len else ("messages", "context")))


@pytest.mark.parametrize(
    "function", [lambda message: None, lambda: None, functools.partial(heard, None), Handler.method]
)
def test_a_function_that_takes_something_else_is_refused(function):
    with pytest.raises(TypeError, match=r"^listener=.* cannot be called with these arguments: \(messages, context\)$"):
        check_takes("listener", function, "messages", "context")


def test_what_was_returned_is_awaitable():
    with pytest.raises(TypeError, match=r"^the listener returned 5, which cannot be awaited"):
        check_awaitable("the listener", 5)


@pytest.mark.parametrize("group", ["g", "%RETRY%a_b-C|9", "g" * 255])
def test_groups_are_named_in_rocketmq_s_alphabet(group):
    check_group(group)


@pytest.mark.parametrize("group", ["", "a b", "a.b", "a\n", "g" * 256, 5])
def test_another_name_is_refused(group):
    with pytest.raises(ValueError, match=r"letters, digits, % | _ or -"):
        check_group(group)


@pytest.mark.parametrize("start", ["first", datetime(2030, 1, 1, tzinfo=UTC)])
def test_a_known_start_is_taken(start):
    check_start("from_", start, ("first",), (datetime,))


def test_an_unknown_start_is_told_with_what_is_known():
    with pytest.raises(ValueError, match=r"^from_=7 is not known; it is one of 'first', any datetime$"):
        check_start("from_", 7, ("first",), (datetime,))


@pytest.mark.parametrize(
    ("value", "kinds", "wanted"),
    [(None, (str,), "str"), (5, (bytes, bytearray), "bytes or bytearray"), ("x", (int, NoneType), "int or None")],
)
def test_an_argument_of_another_type_is_told_with_those_that_there_are(value, kinds, wanted):
    check_is("tags", kinds[0](), *kinds)
    with pytest.raises(
        TypeError, match=rf"^tags={value!r} is of type {type(value).__name__}; it is to be of type {wanted}$"
    ):
        check_is("tags", value, *kinds)


def test_a_truth_is_no_number():
    for check in (
        lambda: check_is("n", True, int),
        lambda: check_count("n", True, 0),
        lambda: check_seconds("n", False),
    ):
        with pytest.raises(TypeError, match=r"^n=(True|False) is of type bool"):
            check()


@pytest.mark.parametrize(
    ("value", "most", "bounds"), [(0, None, "1 or more"), (-(10**30), None, "1 or more"), (6, 5, "1 to 5")]
)
def test_a_number_out_of_its_bounds_is_told_with_them(value, most, bounds):
    check_count("concurrency", 5, 1, most)
    with pytest.raises(ValueError, match=rf"^concurrency={value}; it is to be {bounds}$"):
        check_count("concurrency", value, 1, most)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_what_is_no_time_is_refused(value):
    check_seconds("wait_s", 0, may_be_none=True)
    check_seconds("wait_s", 0.001)
    with pytest.raises(ValueError, match=r"^wait_s=\S+; it is to be a number of seconds over 0$"):
        check_seconds("wait_s", value)


@pytest.mark.parametrize("topic", ["", "a b", "site/1/temp", "a.b", "a\n"])
def test_a_name_that_no_topic_has_is_refused(topic):
    check_topic("%RETRY%a_b-C|9")
    with pytest.raises(ValueError, match=r"a name is made of letters"):
        check_topic(topic)


def test_what_is_no_function_cannot_be_called():
    with pytest.raises(TypeError, match=r"^selector=5 cannot be called$"):
        check_takes("selector", 5, "queues", "message")
