"""What policies may say: the keys that RabbitMQ knows, and what their values may be.

Texts are RabbitMQ's, and so are its names of values in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.amqp.argument_rules import LOCATORS, MODES, OVERFLOWS, STRATEGIES, TIME_MS_MAX, parse_age

Definition = Mapping[str, object]
Check = Callable[[object], bool]


def _number(least: int, most: int | None = None) -> Check:
    def check(value: object) -> bool:
        return _is_whole(value) and least <= int(str(value)) <= (most or int(str(value)))

    return check


def _choice(choices: tuple[str, ...]) -> Check:
    return lambda value: value in choices


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_age(value: object) -> bool:
    return isinstance(value, str) and parse_age(value) >= 0


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_anything(value: object) -> bool:
    del value
    return True


KEYS: dict[str, tuple[Check, str]] = {
    "message-ttl": (_number(0, TIME_MS_MAX), "message TTL"),
    "expires": (_number(1, TIME_MS_MAX), "queue expiry"),
    "max-length": (_number(0), "maximum length"),
    "max-length-bytes": (_number(0), "maximum length in bytes"),
    "overflow": (_choice(OVERFLOWS), "overflow value"),
    "dead-letter-exchange": (_is_text, "dead letter exchange name"),
    "dead-letter-routing-key": (_is_text, "dead letter routing key"),
    "delivery-limit": (_is_whole, "delivery limit"),
    "alternate-exchange": (_is_text, "alternate exchange name"),
    "max-age": (_is_age, "max age"),
    "consumer-timeout": (_number(0), "consumer timeout"),
}
"""By name: what a value may be, and what it is called."""
NO_MEANING: dict[str, tuple[Check, str]] = {
    "queue-mode": (_choice(MODES), "queue-mode value"),
    "queue-version": (_number(1, 2), "queue-version value"),
    "queue-master-locator": (_is_text, "queue master locator"),
    "queue-leader-locator": (_choice(LOCATORS), "queue leader locator"),
    "dead-letter-strategy": (_choice(STRATEGIES), "dead letter strategy"),
    "max-in-memory-length": (_number(0), "maximum memory in length"),
    "max-in-memory-bytes": (_number(0), "maximum memory in bytes"),
    "stream-max-segment-size-bytes": (_number(0), "segment size"),
    "max-segment-size": (_number(0), "segment size"),
    "initial-cluster-size": (_number(0), "cluster size"),
    "stream-filter-size-bytes": (_number(0), "filter size"),
    "target-group-size": (_number(1), "target group size"),
    "member-placement-tag": (_is_text, "member placement tag"),
    "consumer-disconnected-timeout": (_number(0), "consumer disconnected timeout"),
    **{f"ha-{name}": (_is_anything, name) for name in ("mode", "params", "sync-mode", "sync-batch-size")},
    **{f"ha-promote-on-{name}": (_is_anything, name) for name in ("failure", "shutdown")},
}
"""What is taken and kept, and changes nothing here: messages are on disk, on one node."""
OPERATORS = (
    "expires", "message-ttl", "max-length", "max-length-bytes", "delivery-limit", "max-in-memory-length",
    "max-in-memory-bytes", "target-group-size", "member-placement-tag", "overflow", "queue-version",
    "queue-master-locator",
)  # fmt: skip
"""What operator policies may say: limits, of which the stricter holds, and texts that go before those of policies."""


def find_fault(definition: Definition, *, is_operator: bool) -> str | None:
    """Return what is wrong with a definition, None where nothing is."""
    if not definition:
        return "no policy provided"
    known = {**KEYS, **NO_MEANING}
    unknown = [name for name in definition if name not in known or (is_operator and name not in OPERATORS)]
    if unknown:
        pairs = ",".join(f'{{<<"{name}">>,{term_of(definition[name])}}}' for name in unknown)
        return f"[{pairs}] are not recognised policy settings"
    for name, value in definition.items():
        check, noun = known[name]
        if not check(value):
            return f"{term_of(value)} is not a valid {noun}"
    return None


def term_of(value: object) -> str:
    """Return a value as RabbitMQ writes it in texts."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return f'<<"{value}">>' if isinstance(value, str) else str(value)
