"""No test waits for ever: one of a coroutine neither, in whose loop pytest-timeout's exception ends."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.waiting import limited


@pytest.mark.asyncio
async def test_what_waits_for_ever_fails():
    with pytest.raises(TimeoutError):
        await limited(asyncio.Event().wait, 0.01)()


@pytest.mark.asyncio
async def test_a_test_of_a_coroutine_function_has_a_limit(request):
    runs = request.node.obj
    made_by = []
    while hasattr(runs, "__wrapped__"):
        runs = runs.__wrapped__
        made_by.append(runs.__code__.co_qualname)
    assert f"{limited.__name__}.<locals>.run" in made_by
