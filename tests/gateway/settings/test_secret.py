from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from gateway.settings.secret import HIDDEN, Secret, is_secret


class Words(BaseModel):
    hidden: Secret = ""
    shown: str = ""


def test_secret_is_known_by_its_field():
    assert [name for name, field in Words.model_fields.items() if is_secret(field)] == ["hidden"]


def test_what_stands_for_a_secret_is_none():
    assert Words(hidden="x", shown=HIDDEN).hidden == "x"
    with pytest.raises(ValidationError, match="lmq config show --secrets"):
        Words(hidden=HIDDEN)
