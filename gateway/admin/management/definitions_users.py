"""Users and permissions in files of definitions: how an export tells of them, and how an import makes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field, ValidationError

from gateway.admin.management.definitions_export import Told
from gateway.admin.management.definitions_plan import DefinitionsError
from gateway.admin.management.users import RABBITMQ, Tags
from gateway.auth.credentials import GUEST, OWN_PREFIX
from gateway.auth.stored_users import NAME_BYTES_MAX, StoredUsers
from gateway.auth.user_quotas import NAMES as LIMIT_NAMES, UserQuotas, find_fault
from gateway.auth.user_rows import PLACES, KeyRow, NameRow
from gateway.auth.users import PasswordHashError, parse_hash, read_rabbitmq_hash, write_rabbitmq_hash
from gateway.plain_errors import tell_wrong
from gateway.regex import compile_regex

USER_SECTIONS = ("users", "permissions", "topic_permissions")
OURS = "rabbitmq-"  # what hashes that RabbitMQ reads begin with
NOT_GUEST = "here guest comes in from this machine only, and may do all (auth.amqp_guest)"
NOTHING = "a^"  # an expression that no text matches
Text = Annotated[str, Field(max_length=4_096)]
Said = TypeVar("Said", bound=BaseModel)


class SaidUser(BaseModel):
    """A user; `lmq_password_hash` is one that RabbitMQ does not read."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_BYTES_MAX)]
    password_hash: Text = ""
    hashing_algorithm: str | None = None
    lmq_password_hash: Text = ""
    lmq_disabled: bool = False
    tags: Tags = []
    limits: dict[str, object] = {}


class SaidNames(BaseModel):
    """What a user may do in a virtual host."""

    user: Text
    vhost: Text
    configure: Text
    write: Text
    read: Text


class SaidKeys(BaseModel):
    """Which routing keys of an exchange a user may use."""

    user: Text
    vhost: Text
    exchange: Text
    write: Text
    read: Text


def tell_users(stored: StoredUsers, quotas: UserQuotas) -> Iterator[Told | None]:
    """Give the users of the data folder with their permissions; what they sign with is not told."""
    for user in list(stored.users.values()):
        said: dict[str, object] = {"name": user.name, "password_hash": "", "hashing_algorithm": RABBITMQ}
        if user.kept.startswith(OURS):
            said["password_hash"], said["hashing_algorithm"] = write_rabbitmq_hash(user.kept)
        elif user.kept:
            said["lmq_password_hash"] = user.kept
        if user.is_disabled:
            said["lmq_disabled"] = True
        yield "users", {**said, "tags": list(user.tags), "limits": quotas.stored.get(user.name, {})}
        names, keys = stored.names.get(user.name, {}), stored.keys.get(user.name, {})
        for vhost in list(names):  # no pairs: to the collector of cycles ten thousand of them are new
            row = names.get(vhost)
            yield None if row is None else ("permissions", {"user": user.name, "vhost": vhost, **row._asdict()})
        for vhost, exchange in list(keys):
            of_keys, where = keys.get((vhost, exchange)), {"user": user.name, "vhost": vhost, "exchange": exchange}
            yield None if of_keys is None else ("topic_permissions", {**where, **of_keys._asdict()})


Work = tuple[str, Callable[[], object]]  # with the user


class UserPlan:
    """The users and permissions that are to be imported.

    Args:
        stored: Where they go.
        quotas: Where their limits go.
        is_of_settings: Whether a user is the settings' to change.
    """

    def __init__(self, stored: StoredUsers, quotas: UserQuotas, is_of_settings: Callable[[str], bool]) -> None:
        self._quotas = quotas
        self.left_out: list[str] = []
        self.counts: dict[str, int] = {}
        self._stored = stored
        self._is_of_settings = is_of_settings
        self._work: list[Work] = []
        self._entries: list[Work] = []  # into virtual hosts, after all that narrows what may be done there
        self._names: set[str] = set()

    def check(self, sections: Mapping[str, list[object]], knows_vhost: Callable[[str], bool]) -> Iterator[None]:
        """Look at all that a file says of users, in steps; `knows_vhost`: whether a virtual host is or will be there.

        Raises:
            DefinitionsError: Something is not well formed, or for a virtual host that is not there.
        """
        for item in sections.get("users", []):
            self._take_user(_read(SaidUser, "user", item))
            yield
        for item in sections.get("permissions", []):
            names = _read(SaidNames, "permission", item)
            _check_vhost(names.vhost, names.user, knows_vhost)
            self._take_names(names)
            yield
        for item in sections.get("topic_permissions", []):
            keys = _read(SaidKeys, "topic permission", item)
            _check_vhost(keys.vhost, keys.user, knows_vhost)
            self._take_keys(keys)
            yield

    def carry_out(self) -> Iterator[None]:
        """Make what is not as the file says, in steps; all that was made counts with the last one, or at an error."""
        changed: dict[str, None] = {}
        try:
            for user, work in chain(self._work, self._entries):
                work()
                changed[user] = None
                yield
            yield from self._stored.tell(changed)
        finally:
            deque(self._stored.tell(changed), maxlen=0)

    def _take_user(self, said: SaidUser) -> None:
        what = f"user '{said.name}'"
        if said.name == GUEST:
            self.left_out.append(f"{what}: {NOT_GUEST}")
            return
        if self._is_of_settings(said.name) or said.name.startswith(OWN_PREFIX):
            self.left_out.append(f"{what}: there is one of this name in the settings (auth.users)")
            return
        try:
            kept = _find_hash(said)
        except PasswordHashError as error:
            self.left_out.append(f"{what}: the password's hash is {error}")
            return
        found = self._stored.users.get(said.name)
        secret = "" if found is None else found.secret.decode()
        tags = tuple(said.tags)
        self._names.add(said.name)
        self._count("users")
        if found is None or (found.kept, found.tags) != (kept, tags):
            self._add(said.name, partial(self._put_user, said, kept, tags, secret))
        elif said.lmq_disabled:
            self._add(said.name, partial(self._disable, said.name))
        self._take_limits(said, what)

    def _put_user(self, said: SaidUser, kept: str, tags: tuple[str, ...], secret: str) -> None:
        self._stored.put_user(said.name, kept, tags, secret, is_told=False)
        if said.lmq_disabled:  # in the same commit
            self._disable(said.name)

    def _disable(self, user: str) -> None:
        self._stored.disable_user(user, is_disabled=True, is_told=False)

    def _take_limits(self, said: SaidUser, what: str) -> None:
        before = self._quotas.stored.get(said.name, {})
        for name, value in said.limits.items():
            fault = find_fault(name, value)
            if name not in LIMIT_NAMES:
                self.left_out.append(f"limit '{name}' of {what}: there is none of that name here")
            elif fault or not isinstance(value, int):
                self.left_out.append(f"limit '{name}' of {what}: {fault}")
            elif before.get(name) != value:
                self._add(said.name, partial(self._quotas.set, said.name, name, value))

    def _take_names(self, said: SaidNames) -> None:
        what = f"permissions of user '{said.user}' in vhost '{said.vhost}'"
        if self._may_have(said.user, what):
            row = NameRow(*(self._sound(each, what) for each in (said.configure, said.write, said.read)))
            self._count("permissions")
            if self._stored.names.get(said.user, {}).get(said.vhost) != row:
                set_names = partial(self._stored.set_names, said.vhost, said.user, row, is_told=False)
                self._entries.append((said.user, set_names))

    def _take_keys(self, said: SaidKeys) -> None:
        what = f"topic permissions of user '{said.user}' at exchange '{said.exchange}' in vhost '{said.vhost}'"
        if self._may_have(said.user, what):
            row = KeyRow(*(self._sound(each, what) for each in (said.write, said.read)))
            self._count("topic_permissions")
            if self._stored.keys.get(said.user, {}).get((said.vhost, said.exchange)) != row:
                where = (said.vhost, said.user, said.exchange)
                self._add(said.user, partial(self._stored.set_keys, *where, row, is_told=False))

    def _may_have(self, user: str, what: str) -> bool:
        if user == GUEST:
            self.left_out.append(f"{what}: {NOT_GUEST}")
            return False
        if user in self._names or user in self._stored.users or self._is_of_settings(user):
            return True
        self.left_out.append(f"{what}: there is no such user")
        return False

    def _sound(self, expression: str, what: str) -> str:
        """Return an expression, or one that matches nothing where it cannot be understood: nobody is to get more by it.

        To leave it out would: rights that a user has already would stay, and without topic permissions any routing key
        may be used.
        """
        text = expression
        for place in PLACES:
            text = text.replace(place, "x")  # texts stand there later
        try:
            compile_regex(text)
        except ValueError as error:
            self.left_out.append(f"{what}: {expression!r} {error}; nothing matches in its place")
            return NOTHING
        return expression

    def _add(self, user: str, work: Callable[[], object]) -> None:
        self._work.append((user, work))

    def _count(self, section: str) -> None:
        self.counts[section] = self.counts.get(section, 0) + 1


def _find_hash(said: SaidUser) -> str:
    """Return the hash of a user's password as it is kept, empty where no password is right.

    Raises:
        PasswordHashError: It is of no known kind.
    """
    if said.lmq_password_hash:
        parse_hash(said.lmq_password_hash)
        return said.lmq_password_hash
    return read_rabbitmq_hash(said.password_hash, said.hashing_algorithm or RABBITMQ) if said.password_hash else ""


def _check_vhost(vhost: str, user: str, knows_vhost: Callable[[str], bool]) -> None:
    if not knows_vhost(vhost):
        raise DefinitionsError([f"permissions of user '{user}': no vhost '{vhost}'"])


def _read(form: type[Said], kind: str, item: object) -> Said:
    try:
        return form.model_validate(item)
    except ValidationError as error:
        wrong = tell_wrong(error.errors())[0]
        where = "".join(f"{part}: " for part in wrong.place)
        raise DefinitionsError([f"{kind}: {where}{wrong.text}"]) from error
