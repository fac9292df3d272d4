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
        raise ValueError(f"{text!r} is not a network such as 10.0.0.0/8") from error
    return text


Network = Annotated[str, AfterValidator(_check_network)]


class PenaltySettings(BaseModel, frozen=True, extra="forbid"):
    """An address that guesses passwords: its logins are refused for a while, without a check."""

    # different wrong logins after which an address is refused, 0: any number
    wrong_max: Annotated[int, Field(ge=0, le=1_000_000)] = 30
    within_s: Annotated[int, Field(ge=1, le=DAY_S)] = 600  # time within which wrong logins count together
    refuse_s: Annotated[int, Field(ge=1, le=DAY_S)] = 60  # time of the first refusal; each next one is twice as long
    refuse_s_max: Annotated[int, Field(ge=1, le=30 * DAY_S)] = 3_600  # longest time of a refusal
    loopback: bool = False  # also refuse addresses of this machine
    exempt: tuple[Network, ...] = ()  # networks that are never refused, such as "10.0.0.0/8"

    @model_validator(mode="after")
    def _check_times(self) -> PenaltySettings:
        if self.refuse_s > self.refuse_s_max:
            raise ValueError(f"refuse_s ({self.refuse_s}) is more than refuse_s_max ({self.refuse_s_max})")
        return self
