from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.settings.limits import LimitsSettings


def test_maxima_are_no_less_than_nothing():
    assert LimitsSettings(memory_bytes_max=0).memory_bytes_max == 0
    with pytest.raises(ValidationError):
        LimitsSettings(connections_max=-1)
