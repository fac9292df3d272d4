from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.penalty_settings import PenaltySettings


def test_exempt_networks_are_networks():
    assert PenaltySettings(exempt=("10.0.0.0/8", "::1/128")).exempt == ("10.0.0.0/8", "::1/128")
    for wrong in ("10.0.0.1/8", "example.org", ""):
        with pytest.raises(ValidationError, match="is no network"):
            PenaltySettings(exempt=(wrong,))
