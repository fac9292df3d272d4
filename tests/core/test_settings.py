from __future__ import annotations

import pytest
from pydantic import ValidationError

from core.settings import FlushSettings, StoreSettings


def test_defaults_are_the_documented_ones():
    settings = StoreSettings()
    assert settings.segment_bytes == 256 * 1024 * 1024
    assert settings.inline_dispatch_bytes == 1024
    assert (settings.flush.mode, settings.flush.interval_ms) == ("sync", 500)
    assert (settings.retention.age_hours, settings.retention.bytes_max) == (48, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"segment_bytes": 1000},
        {"segment_bytes": 70_000},
        {"inline_dispatch_bytes": 32_768},
        {"flush": {"mode": "never"}},
        {"parent_topic": "a/b"},
        {"parent_topic": "LMQ_GAP"},
        {"store_host": "localhost"},
        {"no_such_key": 1},
    ],
)
def test_values_out_of_range_and_unknown_keys_are_refused(wrong):
    with pytest.raises(ValidationError):
        StoreSettings.model_validate(wrong)


def test_settings_never_change():
    with pytest.raises(ValidationError):
        FlushSettings().interval_ms = 3
