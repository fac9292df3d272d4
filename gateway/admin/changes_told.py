"""Tells what was changed by the admin API, once it was: by a row here, by a door, or as `admin.changed` with the path.

Refusals of a user that logged in are told too.
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.admin.same_site import LOOKS
from gateway.events import Actor, Kind

ACTOR = "actor"  # in the state of a request: its user
FIELDS = "told"  # in the state of a request: what a route says beside the names in the path
REFUSED = frozenset({401, 403})
FAILED = 400
OF_DOORS = None  # the AMQP door tells it, or there is nothing to be told: no definition changes

KINDS: dict[tuple[str, str], Kind | None] = {
    ("POST", "/api/users/bulk-delete"): Kind.USER_DELETED,
    ("PUT", "/api/users/{name}"): Kind.USER_CREATED,
    ("DELETE", "/api/users/{name}"): Kind.USER_DELETED,
    ("PUT", "/api/lmq/users/{name}/password"): Kind.USER_PASSWORD_CHANGED,
    ("PUT", "/api/lmq/users/{name}/tags"): Kind.USER_TAGS_SET,
    ("POST", "/api/lmq/users/{name}/disable"): Kind.USER_DISABLED,
    ("POST", "/api/lmq/users/{name}/enable"): Kind.USER_ENABLED,
    ("PUT", "/api/user-limits/{user}/{name}"): Kind.USER_LIMITS_SET,
    ("DELETE", "/api/user-limits/{user}/{name}"): Kind.USER_LIMITS_CLEARED,
    ("PUT", "/api/permissions/{vhost}/{user}"): Kind.PERMISSION_CREATED,
    ("DELETE", "/api/permissions/{vhost}/{user}"): Kind.PERMISSION_DELETED,
    ("PUT", "/api/topic-permissions/{vhost}/{user}"): Kind.TOPIC_PERMISSION_CREATED,
    ("DELETE", "/api/topic-permissions/{vhost}/{user}"): Kind.TOPIC_PERMISSION_DELETED,
    ("DELETE", "/api/topic-permissions/{vhost}/{user}/{exchange}"): Kind.TOPIC_PERMISSION_DELETED,
    ("PUT", "/api/vhosts/{name}"): Kind.VHOST_CREATED,
    ("DELETE", "/api/vhosts/{name}"): Kind.VHOST_DELETED,
    ("PUT", "/api/vhost-limits/{vhost}/{name}"): Kind.VHOST_LIMITS_SET,
    ("DELETE", "/api/vhost-limits/{vhost}/{name}"): Kind.VHOST_LIMITS_CLEARED,
    ("PUT", "/api/policies/{vhost}/{name}"): Kind.POLICY_SET,
    ("DELETE", "/api/policies/{vhost}/{name}"): Kind.POLICY_CLEARED,
    ("PUT", "/api/operator-policies/{vhost}/{name}"): Kind.POLICY_SET,
    ("DELETE", "/api/operator-policies/{vhost}/{name}"): Kind.POLICY_CLEARED,
    ("PUT", "/api/parameters/{component}/{vhost}/{name}"): OF_DOORS,
    ("DELETE", "/api/parameters/{component}/{vhost}/{name}"): OF_DOORS,
    ("PUT", "/api/global-parameters/{name}"): OF_DOORS,
    ("DELETE", "/api/global-parameters/{name}"): OF_DOORS,
    ("POST", "/api/rebalance/queues"): OF_DOORS,
    ("POST", "/api/definitions"): Kind.DEFINITIONS_IMPORTED,
    ("POST", "/api/definitions/{vhost}"): Kind.DEFINITIONS_IMPORTED,
    ("DELETE", "/api/connections/{name}"): Kind.CONNECTION_TURNED_OUT,
    ("DELETE", "/api/connections/username/{user}"): Kind.CONNECTION_TURNED_OUT,
    ("DELETE", "/api/lmq/sessions/{client}"): Kind.SESSION_ENDED,
    ("POST", "/api/lmq/groups/{group}/reset"): Kind.GROUP_RESET,
    ("PUT", "/api/lmq/rules/{name}"): Kind.RULE_SET,
    ("DELETE", "/api/lmq/rules/{name}"): Kind.RULE_DELETED,
    ("POST", "/api/lmq/rules/{name}/move"): Kind.RULE_MOVED,
    ("POST", "/api/lmq/tokens"): Kind.TOKEN_CREATED,
    ("DELETE", "/api/lmq/tokens/{name}"): Kind.TOKEN_REVOKED,
    ("POST", "/api/lmq/move"): Kind.MESSAGES_MOVED,
    ("POST", "/api/exchanges/{vhost}/{name}/publish"): OF_DOORS,
    ("POST", "/api/queues/{vhost}/{name}/get"): OF_DOORS,
    ("POST", "/api/queues/{vhost}/{name}/actions"): OF_DOORS,
    ("PUT", "/api/queues/{vhost}/{name}"): OF_DOORS,
    ("DELETE", "/api/queues/{vhost}/{name}"): OF_DOORS,
    ("DELETE", "/api/queues/{vhost}/{name}/contents"): OF_DOORS,
    ("PUT", "/api/exchanges/{vhost}/{name}"): OF_DOORS,
    ("DELETE", "/api/exchanges/{vhost}/{name}"): OF_DOORS,
    ("POST", "/api/bindings/{vhost}/e/{source}/{letter}/{destination}"): OF_DOORS,
    ("DELETE", "/api/bindings/{vhost}/e/{source}/{letter}/{destination}/{key}"): OF_DOORS,
}


class ChangesTold:
    """An ASGI application in front of another one."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and tell what became of it."""
        if scope["type"] != "http" or scope["method"] in LOOKS:
            await self._application(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                _tell(scope, message["status"])
            await send(message)

        await self._application(scope, receive, answer)


def _tell(scope: Scope, status: int) -> None:
    state = scope.get("state", {})
    actor = state.get(ACTOR)
    if not isinstance(actor, Actor):  # a caller that did not come in: told where that was found
        return
    if status in REFUSED:
        actor.tell(Kind.DENIED, action=scope["method"], name=unquote(scope["path"]), by="")
    elif status < FAILED:
        kind = KINDS.get((scope["method"], _find_template(scope)), Kind.CHANGED)
        if kind is not None:
            names = {name: unquote(str(text)) for name, text in scope.get("path_params", {}).items()}
            if "user" in names:  # whose permissions or limits: `user` is the one that asks
                names = {"limit" if name == "name" else name: text for name, text in names.items()}
                names["name"] = names.pop("user")
            actor.tell(kind, **names, **state.get(FIELDS, {}), request=f"{scope['method']} {unquote(scope['path'])}")


def _find_template(scope: Scope) -> str:
    """Return the path of the route that answered; the route itself may know that without what it was included below."""
    said, ours = scope["path"].split("/"), getattr(scope.get("route"), "path", "").strip("/").split("/")
    return "/".join([*said[: len(said) - len(ours)], *ours])
