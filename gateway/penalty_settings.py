"""Settings of what becomes of addresses that guess passwords."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, model_validator

DAY_S = 86_400


def _check_network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no network such as 10.0.0.0/8") from error
    return text


Network = Annotated[str, AfterValidator(_check_network)]


class PenaltySettings(BaseModel, frozen=True, extra="forbid"):
    """What becomes of an address that guesses passwords: its logins are refused for a while, unchecked."""

    wrong_max: Annotated[int, Field(ge=0, le=1_000_000)] = 30  # different wrong logins until then, 0: any number
    within_s: Annotated[int, Field(ge=1, le=DAY_S)] = 600  # that count together
    refuse_s: Annotated[int, Field(ge=1, le=DAY_S)] = 60  # the first time, then twice as long each time
    refuse_s_max: Annotated[int, Field(ge=1, le=30 * DAY_S)] = 3_600  # and no longer
    loopback: bool = False  # also addresses of this machine
    exempt: tuple[Network, ...] = ()  # networks that may be wrong as often as they like, such as "10.0.0.0/8"

    @model_validator(mode="after")
    def _check_times(self) -> PenaltySettings:
        if self.refuse_s > self.refuse_s_max:
            raise ValueError(f"refuse_s ({self.refuse_s}) is more than refuse_s_max ({self.refuse_s_max})")
        return self
