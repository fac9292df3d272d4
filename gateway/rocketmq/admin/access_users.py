"""Users as RocketMQ's tools make them (ACL 2.0): they are users of the data folder, with a secret to sign with.

Only a user with the tag `administrator` may ask, for one that is made here may have that tag (`Super`).

Source: docs/protocols/rocketmq.md, "Users and access lists".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from core.broker import Broker
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import ADMINISTRATOR, OWN_PREFIX
from gateway.auth.settings_users import SECRET_LENGTH_MIN
from gateway.auth.stored_users import NAME_BYTES_MAX
from gateway.auth.users import User
from gateway.events import Actor, Kind
from gateway.rocketmq.admin.access_schemas import UserInfo, parse
from gateway.rocketmq.admin.works import AdminPeer, answer_kept
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode

SUPER, NORMAL = "Super", "Normal"
ENABLED, DISABLED = "enable", "disable"
SECRET_CHARS_MAX = 1_024  # chosen: tools make some dozen; each request is signed with it
LISTED_MAX = 10_000  # chosen: all of them are in one answer, and a frame has 16 MiB
NOBODY = "only a user with the tag administrator may ask for users and access lists, by a signed request"


class AccessUsers:
    """Answers 3001 to 3005.

    Args:
        broker: The one door of the core.
        authenticator: Has the users.
        on_deleted: Told the name of one that is deleted.
    """

    def __init__(self, broker: Broker, authenticator: Authenticator, on_deleted: Callable[[str], None]) -> None:
        self._broker = broker
        self._authenticator = authenticator
        self._on_deleted = on_deleted

    def create(self, request: Command, peer: AdminPeer) -> None:
        """Make a user."""
        actor, name = get_administrator(peer), self._get_name(request)
        if name in self._authenticator.stored.users:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "The user is existed")
        said = parse(UserInfo, bytes(request.body) or b"{}")
        self._broker.check_room()
        self._put(name, said, said.password or "", (), "")
        actor.tell(Kind.USER_CREATED, name=name)
        self._set_status(name, said, actor)
        self._broker.when_kept(partial(answer_kept, request, peer))

    def update(self, request: Command, peer: AdminPeer) -> None:
        """Change a user; a password for the other doors stays."""
        actor, name = get_administrator(peer), self._get_name(request)
        known, said = self._get(name), parse(UserInfo, bytes(request.body) or b"{}")
        if said.password or said.userType is not None:
            self._put(name, said, said.password or known.secret.decode(), known.tags, known.kept)
            actor.tell(Kind.USER_PASSWORD_CHANGED if said.password else Kind.USER_TAGS_SET, name=name)
        self._set_status(name, said, actor)
        self._broker.when_kept(partial(answer_kept, request, peer))

    def delete(self, request: Command, peer: AdminPeer) -> None:
        """Delete a user with all that was allowed to it; harmless where there is none."""
        actor, name = get_administrator(peer), self._get_name(request)
        steps = self._authenticator.stored.delete_user(name)
        if steps is not None:
            deque(steps, maxlen=0)
            self._on_deleted(name)
            actor.tell(Kind.USER_DELETED, name=name)
        self._broker.when_kept(partial(answer_kept, request, peer))

    def get(self, request: Command, peer: AdminPeer) -> Command:
        """Answer with a user, or with no body."""
        get_administrator(peer)
        known = self._authenticator.stored.users.get(self._get_name(request))
        return answer(request, ResponseCode.SUCCESS, body=b"" if known is None else encode_json(_tell(known)))

    def list(self, request: Command, peer: AdminPeer) -> Command:
        """Answer with the users that have a text in their name, in order, none with no body."""
        get_administrator(peer)
        text = request.ext.get("filter") or ""
        users = self._authenticator.stored.users
        found = [_tell(users[name]) for name in sorted(users) if text in name][:LISTED_MAX]
        return answer(request, ResponseCode.SUCCESS, body=encode_json(found) if found else b"")

    def _get_name(self, request: Command) -> str:
        name = text_field(request, "username")
        if not 0 < len(name.encode()) <= NAME_BYTES_MAX or name.startswith(OWN_PREFIX):
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "The username is blank, too long or reserved")
        if self._authenticator.is_of_settings(name):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"user {name} is of the settings, and changed there")
        return name

    def _get(self, name: str) -> User:
        known = self._authenticator.stored.users.get(name)
        if known is None:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "The user is not exist")
        return known

    def _set_status(self, name: str, said: UserInfo, actor: Actor) -> None:
        """Disable the user or let it in again, where that is said and is something else."""
        is_disabled = said.userStatus == DISABLED
        if said.userStatus is not None and self._get(name).is_disabled != is_disabled:
            self._authenticator.stored.disable_user(name, is_disabled=is_disabled)
            actor.tell(Kind.USER_DISABLED if is_disabled else Kind.USER_ENABLED, name=name)

    def _put(self, name: str, said: UserInfo, secret: str, tags: tuple[str, ...], kept: str) -> None:
        if not SECRET_LENGTH_MIN <= len(secret) <= SECRET_CHARS_MAX:
            remark = f"a password has {SECRET_LENGTH_MIN} to {SECRET_CHARS_MAX} characters"
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, remark)
        if said.userType is not None:
            others = tuple(tag for tag in tags if tag != ADMINISTRATOR)
            tags = (*others, ADMINISTRATOR) if said.userType == SUPER else others
        self._authenticator.stored.put_user(name, kept, tags, secret)


def get_administrator(peer: AdminPeer) -> Actor:
    """Return the user that asks.

    Raises:
        CommandRefusedError: It may not.
    """
    actor = peer.find_administrator()
    if actor is None:
        raise CommandRefusedError(ResponseCode.NO_PERMISSION, NOBODY)
    return actor


def _tell(user: User) -> dict[str, str]:
    """Return a user as tools show it, without the password."""
    kind = SUPER if ADMINISTRATOR in user.tags else NORMAL
    return {"username": user.name, "userType": kind, "userStatus": DISABLED if user.is_disabled else ENABLED}
