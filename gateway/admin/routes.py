"""Paths and the functions that answer them, said beside the functions and made into routes once.

FastAPI's own router makes a route where a function is said, and another one each time that router is included in one:
of some 180 functions, three routes each took 9 MB of memory and a third of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from fastapi import FastAPI, routing

each_route: Callable[[Iterable[Any]], Iterable[Any]] = getattr(routing, "iter_route_contexts", iter)
Function = TypeVar("Function", bound=Callable[..., Any])


class _Said(NamedTuple):
    """A function that answers a path."""

    method: str
    path: str
    function: Callable[..., Any]
    tags: tuple[str, ...]
    options: dict[str, Any]  # of FastAPI's route


class Routes:
    """Some of the routes of an API.

    Args:
        prefix: What each path begins with.
        tags: What the description of the API has them under.
    """

    def __init__(self, prefix: str = "", tags: tuple[str, ...] = ()) -> None:
        self._prefix = prefix
        self._tags = tags
        self._said: list[_Said] = []

    def get(self, path: str, **options: Any) -> Callable[[Function], Function]:  # noqa: ANN401 - FastAPI's
        """Have a function answer GET; `options` are those of FastAPI's routes, here and below."""
        return self._add("GET", path, options)

    def head(self, path: str, **options: Any) -> Callable[[Function], Function]:  # noqa: ANN401 - FastAPI's
        """Have a function answer HEAD."""
        return self._add("HEAD", path, options)

    def put(self, path: str, **options: Any) -> Callable[[Function], Function]:  # noqa: ANN401 - FastAPI's
        """Have a function answer PUT."""
        return self._add("PUT", path, options)

    def post(self, path: str, **options: Any) -> Callable[[Function], Function]:  # noqa: ANN401 - FastAPI's
        """Have a function answer POST."""
        return self._add("POST", path, options)

    def delete(self, path: str, **options: Any) -> Callable[[Function], Function]:  # noqa: ANN401 - FastAPI's
        """Have a function answer DELETE."""
        return self._add("DELETE", path, options)

    def _add(self, method: str, path: str, options: dict[str, Any]) -> Callable[[Function], Function]:
        def add(function: Function) -> Function:
            self._said.append(_Said(method, self._prefix + path, function, self._tags, options))
            return function

        return add

    def include(self, others: Routes) -> None:
        """Have the routes of others, below the own prefix and under the own tags, too."""
        for one in others._said:
            self._said.append(one._replace(path=self._prefix + one.path, tags=self._tags + one.tags))

    def add_to(self, api: FastAPI) -> None:
        """Make the routes of an application."""
        for one in self._said:
            api.add_api_route(one.path, one.function, methods=[one.method], tags=list(one.tags), **one.options)


def find_methods(api: FastAPI, path: str) -> list[str]:
    """Return the methods that an application answers at a path, sorted.

    FastAPI makes a route of each function. The first route with the path refuses a method that is not there, and
    names the one method that it takes.
    """
    found: set[str] = set()
    for route in each_route(api.routes):
        regex = getattr(route, "path_regex", None)
        if regex is not None and regex.match(path):
            found.update(getattr(route, "methods", None) or ())
    return sorted(found)
