from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.settings.penalties import PenaltySettings


def test_exempt_networks_are_networks():
    assert PenaltySettings(exempt=("10.0.0.0/8", "::1/128")).exempt == ("10.0.0.0/8", "::1/128")
    for wrong in ("10.0.0.1/8", "example.org", ""):
        with pytest.raises(ValidationError, match="is not a network"):
            PenaltySettings(exempt=(wrong,))


def test_the_first_refusal_is_no_longer_than_the_longest():
    assert PenaltySettings(refuse_s=10, refuse_s_max=10).refuse_s == 10
    with pytest.raises(ValidationError, match=r"refuse_s \(100\) is more than refuse_s_max \(10\)"):
        PenaltySettings(refuse_s=100, refuse_s_max=10)
