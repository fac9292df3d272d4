"""What a user may do; pure questions, asked once for each distinct topic of a batch and each name of an operation.

Answers are remembered until rules or users change.
"""

from __future__ import annotations

from core.cache_budget import Cache, CacheBudget
from gateway.auth.judge import OF_NAMES, OF_TOPICS, PERMISSIONS, Judge, Verdict
from gateway.auth.rule import ACTION_OF, ACTIONS_BY_KIND, CONFIGURE, GROUP, READ, WRITE, Subject

_PUBLISH, _SUBSCRIBE, _BIND = "publish", "subscribe", "bind"
_WIDE = "bind topic"
_MATCHING = "publish to matching"
_EVERYTHING = "everything"
_ENTER = "enter"
_FLAGS = ("may_publish", "may_subscribe", "may_configure")


class View:
    """What counts for a subject at a moment. `judge` None: there are no rules, and all is allowed."""

    __slots__ = ("configure", "judge", "lost", "name", "publish", "subscribe")

    def __init__(
        self,
        judge: Judge | None = None,
        *,
        name: str = "",
        publish: bool = True,
        subscribe: bool = True,
        configure: bool = True,
        lost: bool = False,
    ) -> None:
        self.judge = judge
        self.name = name  # of the user in the settings whose rights these are
        self.publish = publish
        self.subscribe = subscribe
        self.configure = configure
        self.lost = lost  # something that could be read before cannot be now


class Rights:
    """Where permissions come from; `version` goes up whenever they change."""

    __slots__ = ("caches", "version")

    def __init__(self, caches: CacheBudget) -> None:
        self.version = 0
        self.caches = caches

    def look(self, subject: Subject, since: int) -> View:
        """Return what counts for a subject now; it was asked for at version `since` before, -1: never."""
        raise NotImplementedError


class Permissions:
    """May this user publish, subscribe, make and remove things; topics and filters are in MQTT's form.

    Args:
        publish, subscribe, configure: Whether the user may do so at all.
        rights: Where they come from in place of these.
        subject: Whose they are.
    """

    __slots__ = (
        "_configure",
        "_judge",
        "_known",
        "_name",
        "_publish",
        "_rights",
        "_subject",
        "_subscribe",
        "_version",
        "has_lost",
    )

    def __init__(
        self,
        *,
        publish: bool = True,
        subscribe: bool = True,
        configure: bool = True,
        rights: Rights | None = None,
        subject: Subject | None = None,
    ) -> None:
        self._publish = publish
        self._subscribe = subscribe
        self._configure = configure
        self._judge: Judge | None = None
        self._known: Cache | None = None
        self._name = ""
        self._rights = rights
        self._subject = subject
        self._version = -1
        self.has_lost = False  # something that could be read once cannot be any more
        self.find_version()

    def find_version(self) -> int:
        """Return a number that is another one when what was answered before may be wrong."""
        if self._rights is not None and self._rights.version != self._version:
            self._look(self._rights)
        return self._version

    def _look(self, rights: Rights) -> None:
        assert self._subject is not None
        view = rights.look(self._subject, self._version)
        self._version = rights.version
        self.has_lost = self.has_lost or view.lost or (self._subscribe and not view.subscribe)
        self._judge = view.judge
        self._name = view.name
        self._publish = view.publish
        self._subscribe = view.subscribe
        self._configure = view.configure
        if self._known is not None:
            self._known.clear()
        elif view.judge is not None:
            self._known = Cache(rights.caches, "rights", _measure)

    def may_publish(self, topic: bytes) -> bool:
        """Return whether messages may be sent to `topic`."""
        self.find_version()
        if not self._publish or not topic:
            return False
        if self._known is None or self._judge is None:
            return True
        known = self._known.young.get(topic)
        if known is None:
            return self._find(_PUBLISH, b"", topic)
        self._known.hits.count += 1
        return bool(known)

    def may_publish_matching(self, topic_filter: bytes) -> bool:
        """Return whether messages may be sent to all topics that match `topic_filter`."""
        self.find_version()
        return self._publish and (self._judge is None or self._find(_MATCHING, b"", topic_filter))

    def may_subscribe(self, topic_filter: bytes) -> bool:
        """Return whether all that matches `topic_filter` may be read, as an MQTT client gets it."""
        return self._subscribe_as(_SUBSCRIBE, topic_filter)

    def may_bind_topic(self, topic_filter: bytes) -> bool:
        """Return whether all that a binding key matches may be read: wildcards match `$SYS`, too."""
        return self._subscribe_as(_WIDE, topic_filter)

    def may_read_everything(self) -> bool:
        """Return whether all that is stored may be read."""
        return self._subscribe_as(_EVERYTHING, b"#")

    def may_enter(self, vhost: bytes) -> bool:
        """Return whether the virtual host may be used at all."""
        self.find_version()
        return self._judge is None or self._find(_ENTER, vhost, b"")

    def may_configure(self, vhost: bytes, name: bytes, kind: str = "") -> bool:
        """Return whether the queue, exchange, topic or group `name` may be made, changed or removed."""
        self.find_version()
        return self._configure and (self._judge is None or self._find(_action(CONFIGURE, kind), vhost, name))

    def may_write(self, vhost: bytes, name: bytes, kind: str = "") -> bool:
        """Return whether messages may be sent to the exchange or topic `name`."""
        self.find_version()
        return self._publish and (self._judge is None or self._find(_action(WRITE, kind), vhost, name))

    def may_bind(self, vhost: bytes, name: bytes) -> bool:
        """Return whether a binding may be made that leads to the queue or exchange `name`: it is written to."""
        self.find_version()
        return self._configure and (self._judge is None or self._find(WRITE, vhost, name))

    def may_read(self, vhost: bytes, name: bytes, kind: str = "") -> bool:
        """Return whether the queue or topic `name` may be read, or the exchange be bound from."""
        self.find_version()
        return self._subscribe and (self._judge is None or self._find(_action(READ, kind), vhost, name))

    def may_consume(self, vhost: bytes, group: bytes) -> bool:
        """Return whether messages may be consumed as a group: always, where no rule is for names of some kind only."""
        self.find_version()
        judge = self._judge
        return judge is None or not judge.tells_kinds_apart or self.may_read(vhost, group, GROUP)

    def may_write_key(self, vhost: bytes, exchange: bytes, key: bytes) -> bool:
        """Return whether a routing key may be sent to a topic exchange that may be written to."""
        self.find_version()
        return self._judge is None or self._judge.judge_key(WRITE, vhost, exchange, key).is_allowed

    def may_read_key(self, vhost: bytes, exchange: bytes, key: bytes) -> bool:
        """Return whether a topic exchange may be bound from with a routing key, if it may be read."""
        self.find_version()
        return self._judge is None or self._judge.judge_key(READ, vhost, exchange, key).is_allowed

    def explain(self, action: str, name: bytes, vhost: bytes = b"/") -> Verdict:
        """Say what decides a question, and how: a rule, a setting of the user, or the one for all that no rule is for.

        Args:
            action: `publish`, `subscribe`, `read`, `write`, `configure` or `enter`; `bind topic` of a binding key;
                `read group` and the like at the RocketMQ door.
            name: The topic, filter or name; for `enter` none.
            vhost: Where a name is.
        """
        self.find_version()
        right = ACTION_OF.get(action, action)
        flags = {
            "may_publish": self._publish or right not in {_PUBLISH, _MATCHING, WRITE},
            "may_subscribe": self._subscribe or right not in {_SUBSCRIBE, _WIDE, _EVERYTHING, READ},
            "may_configure": self._configure or right not in {CONFIGURE, _BIND},
        }
        for flag, is_let in flags.items():
            if not is_let:
                return Verdict(is_let, f"auth.users.{self._name}.{flag}" if self._name else flag)
        if self._judge is None:
            return Verdict(is_allowed=True, by="no rules")
        verdict = self._decide(action, vhost, name)
        right = WRITE if right == _BIND else right
        if verdict.by != PERMISSIONS or (right not in OF_NAMES and right not in OF_TOPICS):
            return verdict
        return verdict._replace(by=f"{PERMISSIONS}, {self._judge.tell_rows(right, vhost, name)}")

    def find_decider(self, action: str, name: bytes, vhost: bytes = b"/") -> str:
        """Return which rule decides a question, for the log; empty where it is a setting of the user that does."""
        verdict = self.explain(action, name, vhost)
        return "" if self._judge is None or verdict.by.endswith(_FLAGS) else verdict.by

    def _subscribe_as(self, action: str, topic_filter: bytes) -> bool:
        self.find_version()
        if not self._subscribe or not topic_filter:
            return False
        return self._judge is None or self._find(action, b"", topic_filter)

    def _find(self, action: str, vhost: bytes, name: bytes) -> bool:
        """Return an answer that is remembered, or remember it."""
        assert self._known is not None
        key = name if action == _PUBLISH else (action, vhost, name)
        known = self._known.get(key)
        if known is None:
            known = self._decide(action, vhost, name).is_allowed
            self._known.put(key, known)
        return bool(known)

    def _decide(self, action: str, vhost: bytes, name: bytes) -> Verdict:
        judge = self._judge
        assert judge is not None
        if action == _PUBLISH:
            return judge.judge_publish(name)
        if action in {_SUBSCRIBE, _WIDE}:
            return judge.judge_filter(_SUBSCRIBE, name, wide=action == _WIDE)
        if action == _MATCHING:
            return judge.judge_filter(_PUBLISH, name, wide=False)
        if action == _EVERYTHING:
            return judge.judge_everything()
        if action == _ENTER:
            return judge.judge_enter(vhost)
        return judge.judge_name(WRITE if action == _BIND else action, vhost, name)


def _action(action: str, kind: str) -> str:
    return ACTIONS_BY_KIND[kind][action] if kind else action


def _measure(value: bool, generation: int) -> int:  # noqa: ARG001, FBT001 - the interface says so
    return 0


ALL = Permissions()
