from __future__ import annotations

from gateway.amqp.offer import limits_of
from gateway.settings.models import AmqpSettings


def test_connections_are_offered_what_the_settings_say():
    settings = AmqpSettings(frame_bytes_max=8_192, channels_max=7, heartbeat_s=9, handshake_timeout_ms=500)
    limits = limits_of(settings, 1_000)
    assert (limits.frame_max, limits.channel_max, limits.heartbeat_s, limits.handshake_ms) == (8_192, 7, 9, 500)


def test_message_is_as_large_as_the_store_takes_where_the_door_sets_no_limit():
    assert limits_of(AmqpSettings(), 1_000).body_bytes_max == 1_000
    assert limits_of(AmqpSettings(body_bytes_max=10), 1_000).body_bytes_max == 10
