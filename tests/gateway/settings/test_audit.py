from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.settings.audit import AuditSettings


def test_events_that_are_left_out_are_known_by_name():
    assert AuditSettings(leave_out=("binding.created",)).leave_out == ("binding.created",)
    with pytest.raises(ValidationError, match=r"is not an event: events are .*binding\.created"):
        AuditSettings(leave_out=("binding.made",))
