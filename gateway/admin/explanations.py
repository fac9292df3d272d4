"""The routes that say where a publish would go, and what leads to a queue."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import HTTPException, Query, Response

from gateway.admin.explain import MissingError, QuestionError, explain_exchange, explain_topic
from gateway.admin.explain_publish import Publish, explain_publish
from gateway.admin.explain_queue import explain_queue
from gateway.admin.explain_right import Action, Right, explain_right
from gateway.admin.login import Looker
from gateway.admin.routes import Routes
from gateway.admin.schemas import (
    ExchangeExplanation,
    Explanation,
    PublishExplanation,
    QueueExplanation,
    RightExplanation,
)
from gateway.admin.view import View
from gateway.amqp.definition_rows import DEFAULT_VHOST

EXPLANATIONS = Routes(prefix="/api/explain")
HEADERS_MAX = 64  # groups, headers and properties of one question, each; chosen: more than a message has
Topic = Annotated[str | None, Query(min_length=1, max_length=65_535)]
Short = Annotated[str, Query(max_length=255)]
Client = Annotated[str, Query(max_length=65_535)]
Groups = Annotated[list[str] | None, Query(max_length=HEADERS_MAX)]
Named = Annotated[str | None, Query(max_length=255)]
Headers = Annotated[list[str] | None, Query(max_length=HEADERS_MAX)]
Properties = Annotated[list[str] | None, Query(alias="property", max_length=HEADERS_MAX)]


def _refused(error: QuestionError) -> HTTPException:
    return HTTPException(404 if isinstance(error, MissingError) else 400, str(error))


@EXPLANATIONS.get("", response_model=Explanation | ExchangeExplanation)
async def explain(
    view: View,
    looker: Looker,
    *,
    topic: Topic = None,
    exchange: Named = None,
    routing_key: Short = "",
    vhost: Short = DEFAULT_VHOST,
) -> Response:
    """The light queues that a publish to `topic`, or to `exchange` in `vhost` with `routing_key`, would reach now.

    They are given with their filters, bindings and readers. 400: the question has no answer, and why;
    404: there is no such virtual host or exchange.
    """
    is_told = looker.may_see_vhost(vhost) if topic is None else looker.may_see_topic(topic.encode())
    looker.check_sees("the way", is_told=is_told)
    if (topic is None) == (exchange is None):
        raise HTTPException(400, "ask for a topic, or for an exchange and a routing key")
    try:
        if topic is not None:
            found = await explain_topic(view.broker, view.vhosts.topic_host, topic)
        else:
            place = view.vhosts.find(vhost)
            if place is None:
                raise MissingError(f"no vhost '{vhost}'")
            found = await explain_exchange(view.broker, place, exchange or "", routing_key)
    except QuestionError as error:
        raise _refused(error) from error
    return Response(found.model_dump_json(), media_type="application/json")


@EXPLANATIONS.get("/publish", response_model=PublishExplanation)
async def explain_a_publish(
    view: View,
    looker: Looker,
    *,
    door: Literal["amqp", "mqtt", "rocketmq"] = "amqp",
    vhost: Short = DEFAULT_VHOST,
    exchange: Short = "",
    routing_key: Short = "",
    topic: Topic = None,
    header: Headers = None,
    properties: Properties = None,
    user: Named = None,
    queue: Named = None,
) -> Response:
    """Where a publish would go, by which exchanges, whether `user` may, what each door shows of it, why `queue` not.

    A header is NAME=VALUE, and a value in JSON where it is no text; so is a property, by its name in AMQP. 400: the
    question has no answer, and why; 404: there is no such virtual host or exchange.
    """
    by_topic = looker.may_see_topic((topic or "").encode())
    looker.check_sees("the way", is_told=looker.may_see_vhost(vhost) if door == "amqp" else by_topic)
    asked = Publish(door, vhost, exchange, routing_key, topic, header or [], user, queue, properties or [])
    try:
        found = await explain_publish(view, asked)
    except QuestionError as error:
        raise _refused(error) from error
    return Response(found.model_dump_json(), media_type="application/json")


@EXPLANATIONS.get("/right", response_model=RightExplanation)
async def explain_a_right(
    view: View,
    looker: Looker,
    *,
    action: Action,
    name: Client = "",
    door: Literal["amqp", "mqtt", "rocketmq"] = "mqtt",
    vhost: Short = DEFAULT_VHOST,
    user: Short = "",
    client: Client = "",
    address: Short = "",
    group: Groups = None,
) -> Response:
    """Whether `user`, or without one a client that gives no name, may do something, and the rule that decides.

    `group` are those of a user that a token or a back end lets in. 400: the question has no answer, and why.
    """
    looker.check_sees("the right", is_told=looker.may_see_user(user))
    try:
        found = explain_right(view, Right(action, name, door, vhost, user, client, address, tuple(group or ())))
    except QuestionError as error:
        raise _refused(error) from error
    return Response(found.model_dump_json(), media_type="application/json")


@EXPLANATIONS.get("/queue", response_model=QueueExplanation)
async def explain_a_queue(view: View, looker: Looker, name: Short, vhost: Short = DEFAULT_VHOST) -> Response:
    """What leads to an AMQP queue, and what it holds. 404: there is none."""
    looker.check_sees("the queue", is_told=looker.may_see_vhost(vhost))
    try:
        found = explain_queue(view, vhost, name)
    except QuestionError as error:
        raise _refused(error) from error
    return Response(found.model_dump_json(), media_type="application/json")
