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

    filter: Annotated[str, AfterValidator(_check_filter)]  # topics on both sides, without their prefixes
    direction: Literal["out", "in", "both"] = "out"  # out: from here to there; in: from there to here
    qos: Annotated[int, Field(ge=0, le=2)] = 1  # highest QoS; 0 does not wait for a broker that is away
    local_prefix: Prefix = ""  # prefix of the topics here: site1/
    remote_prefix: Prefix = ""  # prefix of the topics at the other broker

    @model_validator(mode="after")
    def _check_exact(self) -> BridgeTopicSettings:
        if self.qos > QOS_1 and self.direction != "out":
            raise ValueError("incoming topics have a qos of at most 1: at 2 a killed process would lose messages")
        return self

    @model_validator(mode="after")
    def _check_delay(self) -> BridgeTopicSettings:
        if self.direction != "in" and self.local_prefix.startswith(_DELAYED):
            raise ValueError(
                "local_prefix: nothing goes out from $delayed/ topics, for messages come to those behind it"
            )
        if self.direction != "out" and self.remote_prefix.startswith(_DELAYED):
            raise ValueError(
                "remote_prefix: nothing comes in from $delayed/ topics: messages go to the topic after the prefix"
            )
        return self

    def __str__(self) -> str:
        """Return what is set, in one line."""
        return " ".join(f"{name}={value}" for name, value in self.model_dump(exclude_defaults=True).items())


class BridgeTlsSettings(BaseModel, frozen=True, extra="forbid"):
    """TLS of a bridge, `bridges.NAME.tls`. The files are in the PEM format, and are read at each connection."""

    ca: Path | None = None  # PEM file of the authorities for the other broker's certificate; none: the system's
    certificate: Path | None = None  # client certificate, if the other broker asks for one
    key: Path | None = None  # its private key; none: it is in the file of the certificate
    verify: bool = True  # false: accept any certificate of the server


class BridgeSettings(BaseModel, frozen=True, extra="forbid"):
    """One bridge to another MQTT broker, under `bridges.NAME`."""

    address: Annotated[str, AfterValidator(_check_address)]  # HOST:PORT of the other broker
    topics: Annotated[tuple[BridgeTopicSettings, ...], Field(min_length=1)]  # what the bridge carries: a list of tables
    version: Literal["5", "3.1.1"] = "5"  # version of MQTT that the other broker speaks
    # tell a broker of 3.1.1 that this is a bridge, as Mosquitto does, so that it sends nothing back
    try_private: bool = True
    # client identifier at the other broker; empty: this machine's name, a dot and the bridge's name
    client_id: str = ""
    username: str = ""  # user name at the other broker
    password_env: str = ""  # the environment variable that holds the password
    password_file: Path | None = None  # file with the password and no more; a line break at its end does not count
    # TLS to the other broker; none: the connection is neither private nor protected from changes
    tls: BridgeTlsSettings | None = None
    keep_alive_s: Annotated[int, Field(ge=5, le=65_535)] = 60  # a broker that is silent for longer counts as away
    # messages without an acknowledgement at once, in each direction
    inflight_max: Annotated[int, Field(ge=1, le=4_096)] = 100
    retry_min_ms: Retry = 1_000  # wait before the first new attempt to connect; each next wait is twice as long
    retry_max_ms: Retry = 60_000  # longest wait between two attempts
    # topic at the other broker with 1, retained, while the bridge is connected, else 0; empty: none
    status_topic: str = ""

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
