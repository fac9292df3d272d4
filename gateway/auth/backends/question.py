"""What a back end is asked about a login, and what it may answer."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from gateway.auth.tokens import NEVER_MS, is_name
from gateway.auth.topic_rights import TopicQuestion
from gateway.settings.backends import BackendSettings
from gateway.settings.rules import RuleSettings

GROUPS_MAX = 256  # of one user; chosen: rules are looked for by each of them


class BackendError(Exception):
    """A back end gave no answer that can be used: nobody comes in by it. The text is for the log."""


class Question(NamedTuple):
    """A login to judge. `protocol` is a door's, `client` an MQTT client identifier, `host` without a port.

    `certificate` is one that was verified, in DER; its holder may have no password, `is_by_certificate`, which is a
    question for back ends that look at certificates alone.
    """

    protocol: str
    user: str
    password: str
    client: str
    host: str
    certificate: bytes = b""
    is_by_certificate: bool = False

    def values(self) -> dict[str, str]:
        """Return what stands for each placeholder of the settings."""
        return {
            "username": self.user,
            "password": self.password,
            "clientid": self.client,
            "peerhost": self.host,
            "protocol": self.protocol,
        }


class Verdict(Enum):
    """The answers that there are. `NOT_MINE`: the back end knows nobody of that name; the next one is asked."""

    YES = "allow"
    NO = "deny"
    NOT_MINE = "ignore"


class Reply(NamedTuple):
    """An answer; with YES the user's groups, when it ends, and rules behind those of the settings."""

    verdict: Verdict
    groups: tuple[str, ...] = ()
    ends_at_ms: int = NEVER_MS
    rules: tuple[RuleSettings, ...] = ()


NO = Reply(Verdict.NO)
NOT_MINE = Reply(Verdict.NOT_MINE)


class Backend(Protocol):
    """Something that knows users."""

    @property
    def settings(self) -> BackendSettings:
        """What every back end has."""

    def key(self, question: Question) -> tuple[str, ...]:
        """Return what the answer depends on: the same key has the same answer for a while."""

    async def ask(self, question: Question) -> Reply:
        """Return its answer; cancelled where that takes too long.

        Raises:
            BackendError, OSError: There is none.
        """

    def close(self) -> None:
        """Let go of connections and threads; what is under way may end by itself."""


@runtime_checkable
class CertificateBackend(Protocol):
    """A back end that looks at certificates."""

    @property
    def sees_certificates(self) -> bool:
        """Whether it does."""


@runtime_checkable
class TopicBackend(Protocol):
    """A back end that may want to be asked about topics, too."""

    @property
    def judges_topics(self) -> bool:
        """Whether it is asked about each topic of the clients that it let in."""

    async def ask_topic(self, question: TopicQuestion) -> bool:
        """Return whether a client may do something with a topic.

        Raises:
            BackendError, OSError: There is no answer.
        """


def check_groups(names: object) -> tuple[str, ...]:
    """Return groups as a back end said them.

    Raises:
        BackendError: They are no list of names, or too many.
    """
    if not isinstance(names, list | tuple) or len(names) > GROUPS_MAX or not all(map(is_name, names)):
        raise BackendError("its groups are not a list of names, or too many")
    return tuple(names)
