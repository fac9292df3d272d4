from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.settings.user_limits import UserLimitsSettings


def test_limits_are_no_less_than_nothing():
    assert UserLimitsSettings().connections_max == 0
    for name in UserLimitsSettings.model_fields:
        with pytest.raises(ValidationError):
            UserLimitsSettings(**{name: -1})
