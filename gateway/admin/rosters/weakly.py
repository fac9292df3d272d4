"""Calls of what holds the caller, without holding it in turn.

The collector leaves alone what it has looked at once (decision 0010): a list that is held by its own parts would stay
for good when it is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

Given = ParamSpec("Given")
Result = TypeVar("Result")


def weakly(method: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return a call of a bound method that does not keep its object; nobody calls it once the object is gone."""
    held = WeakMethod(method)

    def call(*arguments: Given.args, **named: Given.kwargs) -> Result:
        found = held()
        assert found is not None
        return found(*arguments, **named)

    return call
