"""What a peer says of itself at a door, and what it is answered."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from gateway.auth.permissions import Permissions
from gateway.auth.tokens import Token
from gateway.auth.topic_rights import TopicRights
from gateway.auth.users import User
from gateway.settings.models import UserTag
from gateway.settings.way_names import Ways

GUEST = "guest"
ADMINISTRATOR: UserTag = "administrator"
OWN_PREFIX = "$bridge/"  # of the users that are parts of the gateway
OWN_PEER = "inside:0"  # of a connection that a part of the gateway made: no socket's peer is called so
PASSWORD_BYTES_MAX = 8_192  # a longer one is wrong; those that wait for a check stay in memory


class Credentials(NamedTuple):
    """What a peer says of itself.

    `protocol` is `mqtt`, `amqp` or `rocketmq`, `client` an MQTT client identifier, `peer` where it comes from by its
    socket: `HOST:PORT`; `user` and `password` are None where it gave none. `certified` is the user that its
    certificate proves, empty: none. `signed` is there in place of a password where the peer signed what it sent: it
    says whether that was done with a secret. `certificate` is one that was verified, in DER. `ways` are the
    authenticators that count where it came in, None: all.
    """

    protocol: str
    user: str | None
    password: bytes | None
    peer: str
    certified: str = ""
    signed: Callable[[bytes], bool] | None = None
    client: str = ""
    certificate: bytes = b""
    ways: Ways = None

    def counts(self, way: str) -> bool:
        """Return whether an authenticator counts where it came in."""
        return self.ways is None or way in self.ways

    @property
    def host(self) -> str:
        """The address that the peer comes from."""
        return self.peer.rpartition(":")[0]


class Identity:
    """The user of a connection, and its rights. An anonymous one has an empty name, whatever name it gave."""

    __slots__ = ("account", "may", "token", "topics", "user", "ways")

    def __init__(
        self,
        user: str,
        may: Permissions,
        account: User | None = None,
        token: Token | None = None,
        topics: TopicRights | None = None,
        *,
        ways: Ways = None,
    ) -> None:
        self.user = user
        self.ways = ways  # the authenticators that count where it came in
        self.topics = topics  # where a back end is asked about each topic, which `may` goes by
        self.token = token  # that it came in by
        self.may = may
        self.account = account  # whose password or secret it was; None: nobody's

    def renew(self, other: Identity) -> None:
        """Go by a later login of the same user."""
        self.may, self.account, self.token, self.topics = other.may, other.account, other.token, other.topics


class Refusal(Enum):
    """Why a client does not come in; the text is for the log."""

    NAMELESS = "anonymous clients are not let in"
    WRONG = "wrong user name or password"
    BUSY = "too many logins wait"
    PENALTY = "this address is refused for a while, after too many wrong logins"
    DOWN = "a back end that may know the user gives no answer"
    QUOTA = "the user has as many connections as it may have"
    STRANGER = "the name in the certificate is none of the users"

    @property
    def is_busy(self) -> bool:
        """Whether the same credentials may let a client in later."""
        return self in {Refusal.BUSY, Refusal.DOWN}


LoginAnswer = Identity | Refusal
Then = Callable[[LoginAnswer, int], None]  # with the moment, in ms
