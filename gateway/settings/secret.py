"""Settings that are for nobody's eyes: how they are marked, and what stands for them where settings are shown."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic.fields import FieldInfo

HIDDEN = "(hidden)"  # what stands for a secret where settings are shown


def _check_shown(text: str) -> str:
    if text == HIDDEN:
        raise ValueError("is hidden, as lmq config show prints it; put it in, or use lmq config show --secrets")
    return text


Secret = Annotated[str, Field(json_schema_extra={"secret": True}, repr=False), AfterValidator(_check_shown)]


def is_secret(field: FieldInfo) -> bool:
    """Return whether a setting's value is for nobody's eyes."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("secret"))
