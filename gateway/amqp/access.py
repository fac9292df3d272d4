"""What operations ask of a user's rights, and how RabbitMQ words a refusal.

Source: docs/security.md, "What each operation asks".
"""

from __future__ import annotations

from core.lmq.topic_space import filter_from_binding_key, topic_from_routing_key
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import AMQ_TOPIC, DEFAULT, exchange_right
from gateway.amqp.reply_codes import ReplyCode
from gateway.auth.credentials import Identity
from gateway.auth.permissions import Permissions
from gateway.auth.rule_trie import ANY_LEVELS

EXCHANGE = "exchange"
QUEUE = "queue"


def check_not_default(exchange: str) -> None:
    """Check that an operation is not for the default exchange.

    Raises:
        AmqpError: ACCESS_REFUSED.
    """
    if exchange == DEFAULT:
        raise AmqpError(ReplyCode.ACCESS_REFUSED, "operation not permitted on the default exchange")


class Access:
    """The rights of a user in one virtual host; each check raises ACCESS_REFUSED where the user may not.

    `what` is EXCHANGE or QUEUE.
    """

    def __init__(self, vhost: str, identity: Identity, *, has_topic_space: bool = True) -> None:
        self._vhost = vhost
        self._vhost_name = vhost.encode()
        self._has_topic_space = has_topic_space  # `amq.topic` is the one topic space here
        self._user = identity.user
        self._identity = identity

    @property
    def _may(self) -> Permissions:
        """What the user may do now: a later login may change it."""
        return self._identity.may

    def check_configure(self, what: str, name: str) -> None:
        """Check that something may be made or removed."""
        if not self._may.may_configure(self._vhost_name, name.encode()):
            raise self._refused("configure", what, name)

    def check_read(self, what: str, name: str) -> None:
        """Check that messages may be taken from somewhere."""
        if not self._may.may_read(self._vhost_name, name.encode()):
            raise self._refused("read", what, name)

    def check_lead(self, what: str, name: str, exchange: str, key: str | None = None) -> None:
        """Check that what comes to a new queue or exchange may be handed on; `key` None: with any routing key."""
        self.check_read(what, name)
        right = exchange_right(exchange)
        if not self._may.may_write(self._vhost_name, right.encode()):
            raise self._refused("write", EXCHANGE, right)
        self._check_reach_topics(exchange, key)

    def check_bind(self, what: str, name: str, source: str, key: str, *, is_keyed: bool) -> None:
        """Check that a binding from the exchange `source` may be made or removed; `is_keyed`: of the type topic."""
        if what == EXCHANGE:
            check_not_default(name)
        if not self._may.may_bind(self._vhost_name, name.encode()):
            raise self._refused("write", what, name)
        check_not_default(source)
        self.check_read(EXCHANGE, source)
        topic_filter = filter_from_binding_key(key.encode())
        if source == AMQ_TOPIC and self._has_topic_space:
            is_allowed = not topic_filter or self._may.may_bind_topic(topic_filter)
        else:
            is_allowed = not is_keyed or self._may.may_read_key(self._vhost_name, source.encode(), key.encode())
        if not is_allowed:
            raise self._refused_topic("read", source, key)
        if what == EXCHANGE:
            self._check_reach_topics(name, None)

    def _check_reach_topics(self, exchange: str, key: str | None) -> None:
        """Check that messages may go on to an exchange, where that is the topic space; `key` None: with any key."""
        if exchange != AMQ_TOPIC or not self._has_topic_space:
            return
        if key is None:
            is_allowed = self._may.may_publish_matching(ANY_LEVELS)
        else:
            topic = topic_from_routing_key(key.encode())  # the empty key is no topic, and reaches bound queues only
            is_allowed = not topic or self._may.may_publish(topic)
        if not is_allowed:
            raise self._refused_topic("write", exchange, "#" if key is None else key)

    def _refused(self, right: str, what: str, name: str) -> AmqpError:
        reason = f"{right} access to {what} '{name}' in vhost '{self._vhost}' refused for user '{self._user}'"
        by = self._may.find_decider(right, name.encode(), self._vhost_name)
        return AmqpError(ReplyCode.ACCESS_REFUSED, reason, denied=f"{what} '{name}'", by=by)

    def _refused_topic(self, right: str, exchange: str, key: str) -> AmqpError:
        reason = f"{right} access to topic '{key}' in exchange '{exchange}' in vhost '{self._vhost}' refused"
        topic_filter = filter_from_binding_key(key.encode())
        action = "bind topic" if right == "read" else "publish"
        by = self._may.find_decider(action, topic_filter, self._vhost_name)
        denied = f"exchange '{exchange}' key '{key}'"
        return AmqpError(ReplyCode.ACCESS_REFUSED, f"{reason} for user '{self._user}'", denied=denied, by=by)
