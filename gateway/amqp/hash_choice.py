"""One destination of several for each value, by weights: what an `x-consistent-hash` exchange does.

Each destination draws a number for a value, from a hash of both, and the highest wins (weighted rendezvous hashing). So
a value stays where it is while its destination stands, whatever else comes or goes, also over a restart; and a weight
takes no memory.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Hashable
from typing import Generic, TypeVar

from core.parted import PartedMap
from gateway.amqp.errors import AmqpError
from gateway.amqp.reply_codes import ReplyCode

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DRAW_BITS = 52  # a half more is still a number of its own
_SEED_BYTES = 16  # blake2b takes a salt of no more

Owner = TypeVar("Owner", bound=Hashable)


def parse_weight(key: str) -> int:
    """Return the weight that a binding key says.

    Raises:
        AmqpError: PRECONDITION_FAILED: it is no whole number, or less than 1.
    """
    if _WHOLE.fullmatch(key) is None:
        shown = f'<<"{key}">>' if key else "<<>>"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"The binding key must be an integer: {shown}")
    weight = int(key)
    if weight < 1:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, "The binding key must be greater than 0")
    return weight


class HashChoice(Generic[Owner]):
    """The destinations of one exchange, each with its weight: the greatest that it is bound with."""

    def __init__(self) -> None:
        # Of each destination weights and how often each is said, then its seed and the logarithm of its weight.
        self._weights: PartedMap[Owner, dict[int, int]] = PartedMap({})
        self._draws: PartedMap[Owner, tuple[bytes, float]] = PartedMap({})

    def __len__(self) -> int:
        """Return how many destinations there are."""
        return len(self._weights)

    def add(self, owner: Owner, name: bytes, key: str) -> None:
        """Put in a binding of a destination that is named so, uniquely among them."""
        weights = self._weights.get(owner)
        if weights is None:
            weights = self._weights[owner] = {}
        weight = parse_weight(key)
        weights[weight] = weights.get(weight, 0) + 1  # 1, 01 and +1 are bindings of their own
        seed = hashlib.blake2b(name, digest_size=_SEED_BYTES).digest()
        self._draws[owner] = (seed, math.log(max(weights)))

    def remove(self, owner: Owner, key: str) -> None:
        """Take out a binding that is there."""
        weights, draw = self._weights.get(owner), self._draws.get(owner)
        assert weights is not None
        assert draw is not None
        weight = parse_weight(key)
        weights[weight] -= 1
        if not weights[weight]:
            del weights[weight]
        if weights:
            self._draws[owner] = (draw[0], math.log(max(weights)))
        else:
            self._weights.pop(owner)
            self._draws.pop(owner)

    def weight(self, owner: Owner) -> int:
        """Return the weight of a destination that is there."""
        weights = self._weights.get(owner)
        assert weights is not None
        return max(weights)

    def find(self, value: bytes) -> Owner | None:
        """Return the destination of a value, None where there is none at all."""
        found: Owner | None = None
        highest = (-math.inf, b"")
        for owner, (seed, weight) in self._draws.items():
            drawn = (weight - math.log(-math.log(_draw(value, seed))), seed)
            if drawn > highest:
                found, highest = owner, drawn
        return found


def draw_place(value: bytes, count: int) -> int:
    """Return which of `count` places a value has, from 0: what an `x-modulus-hash` exchange does."""
    return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "big") % count


def _draw(value: bytes, seed: bytes) -> float:
    """Return a number between 0 and 1, neither of them."""
    digest = hashlib.blake2b(value, digest_size=8, salt=seed).digest()
    return ((int.from_bytes(digest, "big") >> (64 - _DRAW_BITS)) + 0.5) / (1 << _DRAW_BITS)
