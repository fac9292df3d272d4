"""The settings of bridges: connections from here to other MQTT brokers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, model_validator

from core.settings import LIMIT_MAX
from gateway.address import PortError, parse_address

QOS_1 = 1
Retry = Annotated[int, Field(ge=10, le=LIMIT_MAX)]
_SPECIAL = ("$share/", "$queue/", "$exclusive/", "$replay/", "$delayed/")
_DELAYED = "$delayed/"
_DELAY = re.compile(r"\$delayed/[0-9]{1,10}/.*")


def _check_address(text: str) -> str:
    try:
        _, port = parse_address(text)
    except PortError:
        raise
    except ValueError as error:
        raise ValueError("must be HOST:PORT") from error
    if not port:
        raise ValueError("must be HOST:PORT, the port that the other broker listens on")
    return text


def _check_filter(text: str) -> str:
    levels = text.split("/")
    if not text or "\0" in text or text.startswith(_SPECIAL):
        raise ValueError("must be a plain topic filter, such as sensors/#")
    if any("#" in level and (level != "#" or k < len(levels) - 1) for k, level in enumerate(levels)):
        raise ValueError("# stands alone, as the last level")
    if any("+" in level and level != "+" for level in levels):
        raise ValueError("+ stands for a whole level")
    return text


def _check_prefix(text: str) -> str:
    if any(letter in text for letter in "#+\0"):
        raise ValueError("must be the beginning of a topic, without # and +")
    if text.startswith(_DELAYED) and not _DELAY.fullmatch(text):
        raise ValueError("must be $delayed/SECONDS/, and what topics begin with")
    return text


Prefix = Annotated[str, AfterValidator(_check_prefix)]


class BridgeTopicSettings(BaseModel, frozen=True, extra="forbid"):
    """What one bridge carries, in the list `bridges.NAME.topics`."""

    filter: Annotated[str, AfterValidator(_check_filter)]  # topics, here and there, behind their prefixes
    direction: Literal["out", "in", "both"] = "out"  # from here to there, from there to here
    qos: Annotated[int, Field(ge=0, le=2)] = 1  # at most; 0 does not wait for a broker that is away
    local_prefix: Prefix = ""  # what topics begin with here: site1/
    remote_prefix: Prefix = ""  # what they begin with there

    @model_validator(mode="after")
    def _check_exact(self) -> BridgeTopicSettings:
        if self.qos > QOS_1 and self.direction != "out":
            raise ValueError("what comes in has a qos of 1 at most: at 2 a message would be lost with a killed process")
        return self

    @model_validator(mode="after")
    def _check_delay(self) -> BridgeTopicSettings:
        if self.direction != "in" and self.local_prefix.startswith(_DELAYED):
            raise ValueError(
                "local_prefix: nothing goes out from $delayed/ topics, for messages come to those behind it"
            )
        if self.direction != "out" and self.remote_prefix.startswith(_DELAYED):
            raise ValueError(
                "remote_prefix: nothing comes in from $delayed/ topics, for messages come to those behind it"
            )
        return self

    def __str__(self) -> str:
        """Return what is set, in one line."""
        return " ".join(f"{name}={value}" for name, value in self.model_dump(exclude_defaults=True).items())


class BridgeTlsSettings(BaseModel, frozen=True, extra="forbid"):
    """TLS of a bridge, `bridges.NAME.tls`. The files are in the PEM format, and are read at each connection."""

    ca: Path | None = None  # authorities that the other broker's certificate is verified by; none: the system's
    certificate: Path | None = None  # ours, where the other broker asks for one
    key: Path | None = None  # its private key; none: it is in the file of the certificate
    verify: bool = True  # false: any server that answers is believed


class BridgeSettings(BaseModel, frozen=True, extra="forbid"):
    """One bridge to another MQTT broker, under `bridges.NAME`."""

    address: Annotated[str, AfterValidator(_check_address)]  # HOST:PORT of the other broker
    topics: Annotated[tuple[BridgeTopicSettings, ...], Field(min_length=1)]  # what is carried: a list of tables
    version: Literal["5", "3.1.1"] = "5"  # of MQTT, as the other broker speaks it
    try_private: bool = True  # tell a broker of 3.1.1 that this is a bridge, as Mosquitto does: then it echoes nothing
    client_id: str = ""  # at the other broker; empty: this machine's name, a dot and the bridge's name
    username: str = ""  # at the other broker
    password_env: str = ""  # the environment variable that holds the password
    password_file: Path | None = None  # or the file; the end of its line is left out
    tls: BridgeTlsSettings | None = None  # none: what is sent can be read and changed on its way
    keep_alive_s: Annotated[int, Field(ge=5, le=65_535)] = 60  # a broker that is silent for longer counts as away
    inflight_max: Annotated[int, Field(ge=1, le=4_096)] = 100  # messages that wait for an answer at once, each way
    retry_min_ms: Retry = 1_000  # before the first new try to connect; doubled for each more
    retry_max_ms: Retry = 60_000  # before any
    status_topic: str = ""  # there: 1 is published, retained, while the bridge stands, else 0; empty: nothing is

    @model_validator(mode="after")
    def _check_together(self) -> BridgeSettings:
        kinds = {topic.direction for topic in self.topics}
        if kinds != {"out"} and any(topic.qos > QOS_1 for topic in self.topics):
            raise ValueError("a bridge that carries in sends out with a qos of 1 at most; make another one for qos 2")
        if self.password_env and self.password_file is not None:
            raise ValueError("password_env and password_file are two ways to say one thing")
        if self.retry_min_ms > self.retry_max_ms:
            raise ValueError(f"retry_min_ms ({self.retry_min_ms}) is more than retry_max_ms ({self.retry_max_ms})")
        return self

    @property
    def carries_in(self) -> bool:
        """Whether anything comes from there to here."""
        return any(topic.direction != "out" for topic in self.topics)
