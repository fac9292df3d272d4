from __future__ import annotations

import functools
from datetime import UTC, datetime
from unittest.mock import AsyncMock

import pytest

from lmq.arguments import check_async, check_awaitable, check_group, check_start, check_takes, check_text


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
    with pytest.raises(TypeError, match=r"^listener=.* cannot be called with what it is given: \(messages, context\)$"):
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


def test_text_is_text():
    check_text("tags", "")
    with pytest.raises(TypeError, match=r"^tags=None is of type NoneType; it is to be a str$"):
        check_text("tags", None)
