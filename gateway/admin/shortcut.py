"""Questions go straight to the function that answers them, past what FastAPI finds out for each request anew.

FastAPI looks at one route after the other, at those of a router in a router three times, and at how each argument of
each function is to be read: a millisecond and more for an empty page. All of that is known once the routes are there,
so here it is looked up. The values are read by FastAPI's own fields. A request that is not well formed is FastAPI's,
which says what is wrong with it; so is a route that asks for more than is known here.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from fastapi import FastAPI, Request, Response, routing
from fastapi.datastructures import DefaultPlaceholder
from pydantic import BaseModel, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.admin.routes import each_route

ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
JSON = "application/json"
MISSING = object()  # in place of a default
TELEMETRY = "fastapi.telemetry"  # in a request's scope that FastAPI itself traces
UNUSUAL = (  # what is said of a route and not done here
    *("status_code", "response_model_include", "response_model_exclude", "response_model_exclude_unset"),
    *("response_model_exclude_defaults", "response_model_exclude_none"),
)
UNKNOWN = (  # what functions may ask for that is not given here
    *("cookie_params", "body_params", "websocket_param_name", "http_connection_param_name", "response_param_name"),
    *("background_tasks_param_name", "security_scopes_param_name", "concurrency"),
)
Values = Mapping[str, str]
Answer = Callable[[Request, Exception], Awaitable[Response]]


class _Input(NamedTuple):
    """An argument that is read from the request."""

    name: str
    alias: str  # its name in the request; empty: all of the query is a model's
    field: Any  # FastAPI's, which checks it and makes it what it is
    default: Any

    def read(self, values: Values) -> Any:  # noqa: ANN401 - what the field makes of it
        """Return the argument, MISSING where FastAPI has to say what is wrong."""
        value: object = values.get(self.alias) if self.alias else values
        if value is None:
            return self.default
        found, wrong = self.field.validate(value, {}, loc=())
        return MISSING if wrong else found


class _Call(NamedTuple):
    """A function, and where its arguments come from."""

    function: Callable[..., Awaitable[Any]]
    request: str | None  # the argument that is the request itself
    path: tuple[_Input, ...]
    query: tuple[_Input, ...]
    headers: tuple[_Input, ...]
    given: tuple[tuple[str, int], ...]  # arguments that calls before it gave, by their places


class _Route(NamedTuple):
    """A route, and what is called for it: what it depends on, and its own function last; None: FastAPI does."""

    regex: Any
    calls: tuple[_Call, ...] | None


class Shortcut:
    """An ASGI application in front of FastAPI's own.

    Args:
        application: That of FastAPI.
        answer_failure: Makes the answer of a failure, as FastAPI is told to.
    """

    def __init__(self, application: ASGIApp, answer_failure: Answer) -> None:
        self._application = application
        self._answer_failure = answer_failure
        self._known: _Known | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        is_question = scope["type"] == "http" and scope["method"] == "GET"
        if not is_question or scope.get("root_path") or scope.get(TELEMETRY) is not None:
            await self._application(scope, receive, send)
            return
        if self._known is None:
            self._known = _Known(scope["app"])
        calls, path = self._known.find(scope["path"])
        request = Request(scope, receive, send)
        arguments = None if calls is None else _read(calls, request, path)
        if calls is None or arguments is None:
            await self._application(scope, receive, send)
            return
        scope["path_params"] = path
        try:
            answer = await _run(calls, arguments)
        except HTTPException as failure:
            answer = await self._answer_failure(request, failure)
        await answer(scope, receive, send)


class _Known:
    """The routes of an application that answer questions."""

    def __init__(self, api: FastAPI) -> None:
        everything = list(each_route(api.routes))
        remember_places(getattr(route, "endpoint", None) for route in everything)
        found = [route for route in everything if "GET" in (getattr(route, "methods", None) or ("GET",))]
        self._odd = [route.path_regex for route in found if not _is_plain_path(route)]  # match any number of parts
        self._by_parts: dict[int, list[_Route]] = {}
        for route in found:
            if _is_plain_path(route):
                one = _Route(route.path_regex, _plan(route))
                self._by_parts.setdefault(route.path.count("/"), []).append(one)
        looked_up = ((route.path, *self._look_up(route.path)) for route in found if "{" not in route.path)
        self._plain = {path: calls for path, calls, values in looked_up if not values}

    def find(self, path: str) -> tuple[tuple[_Call, ...] | None, dict[str, str]]:
        """Return what is called for a path, and the parts of it that are values; None where that is not known."""
        calls = self._plain.get(path)
        return (calls, {}) if calls is not None else self._look_up(path)

    def _look_up(self, path: str) -> tuple[tuple[_Call, ...] | None, dict[str, str]]:
        for route in self._by_parts.get(path.count("/"), ()):
            found = route.regex.match(path)
            if found is not None:
                is_odd = any(regex.match(path) for regex in self._odd)
                return None if is_odd else route.calls, found.groupdict()
        return None, {}


def _is_plain_path(route: Any) -> bool:  # noqa: ANN401 - FastAPI's
    return isinstance(getattr(route, "original_route", route), routing.APIRoute) and ":" not in route.path


def remember_places(functions: Iterable[Any]) -> None:
    """Have FastAPI know where functions are written, for its messages: it reads the source, 5 ms and more for each."""
    places = getattr(routing, "_endpoint_context_cache", None)
    for function in functions:
        if isinstance(places, dict) and inspect.isfunction(function):
            code = function.__code__
            place = {"file": code.co_filename, "line": code.co_firstlineno, "function": function.__name__}
            places.setdefault(id(function), place)


def _plan(route: Any) -> tuple[_Call, ...] | None:  # noqa: ANN401 - FastAPI's
    """Return what is to be called for a route, its own function last; None where it asks for what is not known here."""
    is_json = isinstance(route.response_class, DefaultPlaceholder) or _gives_response(route.endpoint)
    if not is_json or any(getattr(route, name, None) for name in UNUSUAL):
        return None
    calls: list[_Call] = []
    return tuple(calls) if _add(route.dependant, calls, {}) is not None else None


def _gives_response(function: Callable[..., Any]) -> bool:
    kind = get_type_hints(function).get("return")
    return inspect.isclass(kind) and issubclass(kind, Response)


def _add(asking: Any, calls: list[_Call], places: dict[Any, int]) -> int | None:  # noqa: ANN401 - FastAPI's
    """Add a function behind those that it depends on, each of them once; return its place, None as `_plan` does."""
    function = asking.call
    if function in places:
        return places[function]
    if not inspect.iscoroutinefunction(function) or any(getattr(asking, name, None) for name in UNKNOWN):
        return None
    given: list[tuple[str, int]] = []
    for needed in asking.dependencies:
        place = _add(needed, calls, places) if needed.use_cache else None
        if place is None:
            return None
        if needed.name is not None:
            given.append((needed.name, place))
    inputs = [
        [_input(field) for field in fields]
        for fields in (asking.path_params, asking.query_params, asking.header_params)
    ]
    known = [tuple(one for one in group if one is not None) for group in inputs]
    if [len(group) for group in known] != [len(group) for group in inputs]:
        return None
    calls.append(_Call(function, asking.request_param_name, known[0], known[1], known[2], tuple(given)))
    places[function] = len(calls) - 1
    return places[function]


def _input(field: Any) -> _Input | None:  # noqa: ANN401 - FastAPI's
    """Return how an argument is read, None where that is not known here."""
    info = field.field_info
    if inspect.isclass(info.annotation) and issubclass(info.annotation, BaseModel):
        fields = info.annotation.model_fields.values()
        is_plain = all(_is_plain(one.annotation) and one.validation_alias is None for one in fields)
        return _Input(field.name, "", field, MISSING) if is_plain and info.in_.value == "query" else None
    if not _is_plain(info.annotation) or info.validation_alias not in {None, info.alias} or info.validate_default:
        return None
    default = MISSING if info.is_required() else info.default
    is_fixed = default is MISSING or isinstance(default, str | int | float | NoneType)
    return _Input(field.name, field.alias, field, default) if is_fixed else None


def _is_plain(kind: object) -> bool:
    """Return whether one text is read for a value of a kind: not so for lists."""
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        return all(_is_plain(one) for one in get_args(kind))
    return (
        _is_plain(get_args(kind)[0])
        if origin is Annotated
        else kind in {str, int, float, bool, NoneType} or (origin is Literal)
    )


def _read(calls: tuple[_Call, ...], request: Request, path: Values) -> list[dict[str, Any]] | None:
    """Return the arguments of all calls but what calls give each other, None where something is wrong with them."""
    query = request.scope["query_string"]
    asked: Values = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)) if query else {}
    found: list[dict[str, Any]] = []
    for call in calls:
        arguments = {one.name: one.read(path) for one in call.path}
        arguments.update({one.name: one.read(asked) for one in call.query})
        arguments.update({one.name: one.read(request.headers) for one in call.headers})
        if any(value is MISSING for value in arguments.values()):
            return None
        if call.request is not None:
            arguments[call.request] = request
        found.append(arguments)
    return found


async def _run(calls: tuple[_Call, ...], arguments: list[dict[str, Any]]) -> Response:
    results: list[Any] = []
    for call, own in zip(calls, arguments, strict=True):
        for name, place in call.given:
            own[name] = results[place]
        results.append(await call.function(**own))
    last = results[-1]
    return last if isinstance(last, Response) else Response(ANYTHING.dump_json(last, by_alias=True), media_type=JSON)
