"""What changes when settings are read again: what may change while the gateway runs, and for which connections.

Source: docs/decisions/0020-reload.md.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from gateway.settings.models import GatewaySettings
from gateway.settings.reading import check_settings
from gateway.settings.secret import HIDDEN, is_secret

LOGGER = logging.getLogger(__name__)

AT_ONCE = "at once"
NEW_CONNECTIONS = "new connections"
NEW_SESSIONS = "new sessions"
NEXT_START = "the next start"

# From when on another value counts; every setting is here, and what is made of it is in `Gateway.reload`.
TAKES_EFFECT = {
    "data_dir": NEXT_START,
    "store.segment_bytes": NEXT_START,
    "store.message_bytes_max": NEXT_START,
    "store.inline_dispatch_bytes": NEXT_START,
    "store.parent_topic": NEXT_START,
    "store.store_host": NEXT_START,
    "store.store_port": NEXT_START,
    "store.disk_free_bytes_min": AT_ONCE,
    "store.queues_max": NEXT_START,
    "store.segments_mapped_max": NEXT_START,
    "store.accept_loss": NEXT_START,
    "store.flush.mode": NEXT_START,
    "store.flush.interval_ms": AT_ONCE,
    "store.retention.age_hours": AT_ONCE,
    "store.retention.bytes_max": AT_ONCE,
    "store.retention.delete_hours": AT_ONCE,
    "mqtt.listen": NEXT_START,
    "mqtt.connections_max": AT_ONCE,
    "mqtt.host_connections_max": AT_ONCE,
    "mqtt.connect_timeout_ms": NEW_CONNECTIONS,
    "mqtt.packet_bytes_max": NEW_CONNECTIONS,
    "mqtt.topic_alias_max": NEW_CONNECTIONS,
    "mqtt.inflight_max": NEW_SESSIONS,
    "mqtt.lag_count_max": AT_ONCE,
    "mqtt.shared_strategy": AT_ONCE,
    "mqtt.subscription_count_max": AT_ONCE,
    "mqtt.response_prefix": NEW_CONNECTIONS,
    "mqtt.client_id_bytes_max": NEW_CONNECTIONS,
    "mqtt.session_expiry_s": AT_ONCE,
    "mqtt.keep_alive_max_s": NEW_CONNECTIONS,
    "mqtt.sys_interval_s": AT_ONCE,
    "mqtt.messages_rate": NEW_CONNECTIONS,
    "mqtt.bytes_rate": NEW_CONNECTIONS,
    "mqtt.messages_out_rate": NEW_CONNECTIONS,
    "mqtt.bytes_out_rate": NEW_CONNECTIONS,
    "mqtt.connects_rate": AT_ONCE,
    "mqtt.client_connects_rate": AT_ONCE,
    "mqtt.queued_count_max": AT_ONCE,
    "mqtt.queued_bytes_max": AT_ONCE,
    "mqtt.delayed_max_s": AT_ONCE,
    "mqtt.retained_count_max": AT_ONCE,
    "mqtt.retained_body_bytes_max": AT_ONCE,
    "mqtt.rewrite": AT_ONCE,
    "mqtt.auto_subscribe": NEW_CONNECTIONS,
    "amqp.listen": NEXT_START,
    "amqp.connections_max": AT_ONCE,
    "amqp.host_connections_max": AT_ONCE,
    "amqp.messages_rate": NEW_CONNECTIONS,
    "amqp.bytes_rate": NEW_CONNECTIONS,
    "amqp.connects_rate": AT_ONCE,
    "amqp.messages_out_rate": NEW_CONNECTIONS,
    "amqp.bytes_out_rate": NEW_CONNECTIONS,
    "amqp.heartbeat_s": NEW_CONNECTIONS,
    "amqp.frame_bytes_max": NEW_CONNECTIONS,
    "amqp.channels_max": NEW_CONNECTIONS,
    "amqp.body_bytes_max": NEW_CONNECTIONS,
    "amqp.handshake_timeout_ms": NEW_CONNECTIONS,
    "amqp.product": NEW_CONNECTIONS,
    "amqp.consumer_timeout_ms": AT_ONCE,
    "amqp.vhosts": AT_ONCE,
    "amqp.mqtt_vhost": NEXT_START,
    "rocketmq.namesrv": NEXT_START,
    "rocketmq.broker": NEXT_START,
    "rocketmq.connections_max": AT_ONCE,
    "rocketmq.host_connections_max": AT_ONCE,
    "rocketmq.connects_rate": AT_ONCE,
    "rocketmq.messages_rate": NEW_CONNECTIONS,
    "rocketmq.bytes_rate": NEW_CONNECTIONS,
    "rocketmq.messages_out_rate": NEW_CONNECTIONS,
    "rocketmq.bytes_out_rate": NEW_CONNECTIONS,
    "rocketmq.advertised_host": NEXT_START,
    "rocketmq.advertised_port": NEXT_START,
    "rocketmq.broker_name": NEXT_START,
    "rocketmq.cluster_name": NEXT_START,
    "rocketmq.auto_create_topics": AT_ONCE,
    "rocketmq.auto_topic_queues": AT_ONCE,
    "rocketmq.topics_max": AT_ONCE,
    "rocketmq.body_bytes_max": AT_ONCE,
    "rocketmq.frame_bytes_max": NEW_CONNECTIONS,
    "rocketmq.idle_timeout_ms": AT_ONCE,
    "rocketmq.delay_levels": AT_ONCE,
    "rocketmq.transaction_timeout_ms": AT_ONCE,
    "rocketmq.transaction_check_interval_ms": AT_ONCE,
    "rocketmq.transaction_checks_max": AT_ONCE,
    "admin.listen": NEXT_START,
    "admin.connects_rate": AT_ONCE,
    "admin.fan_out_report": AT_ONCE,
    "auth.mqtt_anonymous": AT_ONCE,
    "auth.rocketmq_anonymous": AT_ONCE,
    "auth.amqp_guest": AT_ONCE,
    "auth.admin_anonymous": AT_ONCE,
    "auth.behind_proxy": AT_ONCE,
    "auth.users": AT_ONCE,
    "auth.rules": AT_ONCE,
    "auth.default": AT_ONCE,
    "auth.open": AT_ONCE,
    "auth.jwt.algorithms": AT_ONCE,
    "auth.jwt.secret": AT_ONCE,
    "auth.jwt.secret_env": AT_ONCE,
    "auth.jwt.public_key": AT_ONCE,
    "auth.jwt.jwks": AT_ONCE,
    "auth.jwt.jwks_url": AT_ONCE,
    "auth.jwt.jwks_refresh_s": AT_ONCE,
    "auth.jwt.jwks_ca": AT_ONCE,
    "auth.jwt.audience": AT_ONCE,
    "auth.jwt.issuer": AT_ONCE,
    "auth.jwt.user_claim": AT_ONCE,
    "auth.jwt.groups_claim": AT_ONCE,
    "auth.jwt.tags_claim": AT_ONCE,
    "auth.jwt.leeway_s": AT_ONCE,
    "auth.jwt.endless": AT_ONCE,
    "auth.penalty.wrong_max": AT_ONCE,
    "auth.penalty.within_s": AT_ONCE,
    "auth.penalty.refuse_s": AT_ONCE,
    "auth.penalty.refuse_s_max": AT_ONCE,
    "auth.penalty.loopback": AT_ONCE,
    "auth.penalty.exempt": AT_ONCE,
    "auth.user_limits.connections_max": AT_ONCE,
    "auth.user_limits.channels_max": AT_ONCE,
    "auth.user_limits.messages_rate": NEW_CONNECTIONS,
    "auth.user_limits.bytes_rate": NEW_CONNECTIONS,
    "auth.user_limits.messages_out_rate": NEW_CONNECTIONS,
    "auth.user_limits.bytes_out_rate": NEW_CONNECTIONS,
    "auth.user_limits.connects_rate": AT_ONCE,
    "auth.backends": AT_ONCE,
    "bridges": AT_ONCE,
    "cache.bytes_max": AT_ONCE,
    "log.level": AT_ONCE,
    "log.format": AT_ONCE,
    "audit.file": AT_ONCE,
    "audit.bytes_max": AT_ONCE,
    "audit.files_max": AT_ONCE,
    "audit.leave_out": AT_ONCE,
    "events.mqtt": AT_ONCE,
    "events.amqp": AT_ONCE,
    "limits.memory_bytes_max": AT_ONCE,
    "limits.connections_max": AT_ONCE,
    "limits.core_dumps": NEXT_START,
    "limits.address.connections_max": AT_ONCE,
    "limits.address.connects_rate": AT_ONCE,
    "limits.address.messages_rate": NEW_CONNECTIONS,
    "limits.address.bytes_rate": NEW_CONNECTIONS,
    "limits.address.messages_out_rate": NEW_CONNECTIONS,
    "limits.address.bytes_out_rate": NEW_CONNECTIONS,
    "limits.address.exempt": AT_ONCE,
    "telemetry.traces": NEXT_START,
    "telemetry.metrics": NEXT_START,
    "telemetry.endpoint": NEXT_START,
    "telemetry.service_name": NEXT_START,
    "telemetry.sample_ratio": NEXT_START,
    "telemetry.interval_s": NEXT_START,
}


class Change(NamedTuple):
    """One setting that differs; `before` and `after` are fit to be shown."""

    name: str
    before: object
    after: object
    takes_effect: str


def find_changes(before: GatewaySettings, after: GatewaySettings) -> list[Change]:
    """Return what differs, each user's settings by themselves, in the order of the names."""
    old, new = dict(_walk("", before)), dict(_walk("", after))
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return [Change(name, _shown(old.get(name)), _shown(new.get(name)), takes_effect(name)) for name in names]


def takes_effect(name: str) -> str:
    """Return from when on a setting's other value counts; the setting may be one user's."""
    if name == "listen":
        return NEXT_START  # of each address in a list
    return TAKES_EFFECT[name] if name in TAKES_EFFECT else takes_effect(name.rpartition(".")[0])


def settings_in_force(before: GatewaySettings, after: GatewaySettings) -> GatewaySettings:
    """Return what counts after settings were read again: `after`, but for what takes effect at the next start.

    Raises:
        SettingsError: What may change and what may not do not go together.
    """
    tree, kept = after.model_dump(), before.model_dump()
    for name, moment in TAKES_EFFECT.items():
        if moment == NEXT_START:
            *blocks, last = name.split(".")
            _descend(tree, blocks)[last] = _descend(kept, blocks)[last]
    return check_settings(tree, "what was read, beside what takes effect at the next start only")


def _descend(tree: dict[str, Any], blocks: list[str]) -> dict[str, Any]:
    for block in blocks:
        tree = tree[block]
    return tree


class _Secret(NamedTuple):
    """A value that is compared and not shown."""

    text: str


def _shown(value: object) -> object:
    if isinstance(value, _Secret):
        return HIDDEN if value.text else "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None or value == "" else value


def _walk(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield each value with its dotted name; those of a table as settings of their own."""
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            inner = getattr(value, name)
            inner_path = f"{path}.{name}" if path else name
            yield from [(inner_path, _Secret(inner))] if is_secret(field) else _walk(inner_path, inner)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _walk(f"{path}.{name}", inner)
    else:
        yield path, value


def log_changes(changes: Sequence[Change]) -> None:
    """Write a line for each setting that differs, also where that takes effect at the next start only."""
    for change in changes:
        if change.takes_effect == NEXT_START:
            text = "setting takes effect at the next start name=%s in_force=%s read=%s"
            LOGGER.warning(text, change.name, change.before, change.after)
        else:
            text = "setting changed name=%s from=%s to=%s for=%s"
            LOGGER.info(text, change.name, change.before, change.after, change.takes_effect)
    LOGGER.info("settings were read again changes=%d", len(changes))
