"""Requests begin in their order, one in each turn of the loop."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from gateway.admin.turnstile import Turnstile

pytestmark = pytest.mark.asyncio


class Gate:
    """A turnstile whose application notes what comes through, between the turns of the loop that others have."""

    def __init__(self):
        self.seen = []
        self.turnstile = Turnstile(self.serve)

    async def serve(self, scope, receive, send):
        self.seen.append(scope["name"])

    def come(self, name):
        return asyncio.create_task(self.turnstile({"name": name}, None, None))

    async def turn(self):
        """Let others have their turn: what is ready now runs, what that makes ready does not."""
        await asyncio.sleep(0)
        self.seen.append("|")


async def test_requests_that_come_at_once_begin_in_order_and_others_have_their_turn_between_them():
    gate = Gate()
    requests = [gate.come(number) for number in range(20)]
    while not all(request.done() for request in requests):
        await gate.turn()
    numbers = [each for each in gate.seen if each != "|"]
    assert numbers == [*range(20)]
    for first, second in pairwise(numbers):
        assert "|" in gate.seen[gate.seen.index(first) : gate.seen.index(second)]


async def test_one_that_gave_up_takes_no_turn():
    gate = Gate()
    requests = [gate.come(number) for number in range(4)]
    await gate.turn()
    for request in requests[1:3]:
        request.cancel()
    await asyncio.gather(*requests, return_exceptions=True)
    assert [each for each in gate.seen if each != "|"] == [0, 3]


async def test_one_that_comes_later_begins_at_once():
    gate = Gate()
    for number in range(3):
        await gate.come(number)
        await gate.turn()
        await gate.turn()
    assert [each for each in gate.seen if each != "|"] == [0, 1, 2]
