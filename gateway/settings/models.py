"""All settings, as models: names, ranges, defaults, and which of them go together; reading.py fills them.

The table of all of them is docs/settings.md, made from these models by `lmq config doc`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from core.settings import LIMIT_MAX, Limit, Positive, StoreSettings
from gateway.address import PORT_MAX
from gateway.settings.audit import AuditSettings
from gateway.settings.backends import Backend
from gateway.settings.bridges import BridgeSettings
from gateway.settings.delay_levels import DEFAULT_LEVELS, DelayLevels
from gateway.settings.jwt import JwtSettings
from gateway.settings.limits import CacheSettings, LimitsSettings
from gateway.settings.listen import (
    AdminSettings,
    Host,
    Listen,
    MqttListen,
    NetworkListen,
    find_twice,
)
from gateway.settings.observing import EventsSettings, LogSettings, TelemetrySettings
from gateway.settings.penalties import PenaltySettings
from gateway.settings.rules import RuleSettings
from gateway.settings.secret import Secret
from gateway.settings.topic_rules import AutoSubscription, RewriteRule
from gateway.settings.user_limits import UserLimitsSettings
from gateway.settings.ways import find_open, find_unknown


class SettingsError(Exception):
    """Settings that cannot be used; the text is one line for the operator."""


def _check_folder(path: object) -> object:
    if path == "":
        raise ValueError("must name a folder; the current one is .")
    return path


Folder = Annotated[Path, BeforeValidator(_check_folder)]


def _check_topic_prefix(prefix: str) -> str:
    if re.search(r"[+#\x00-\x1f\x7f-\x9f]", prefix) or prefix.startswith(("/", "$")) or prefix.endswith("/"):
        raise ValueError("must be a topic: no wildcard or control character, no slash at either end, no $ in front")
    return prefix


TopicPrefix = Annotated[str, Field(max_length=1_024), AfterValidator(_check_topic_prefix)]


VHOST_BYTES_MAX = 255  # a short string of AMQP


class MqttSettings(BaseModel, frozen=True, extra="forbid"):
    """The MQTT door."""

    listen: MqttListen = "127.0.0.1:1883"  # HOST:PORT, port 0 picks one, `off` closes the door; or a list, see `listen`
    connections_max: Limit = 0  # open connections, 0: as many as file descriptors allow
    host_connections_max: Limit = 0  # open connections from one address, 0: no limit
    # time from the opening of a connection to its CONNECT
    connect_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = 10_000
    packet_bytes_max: Annotated[int, Field(ge=1_024, le=268_435_460)] = 4_194_304  # largest packet that is accepted
    # topic aliases that an MQTT 5 client may use, 0 for none
    topic_alias_max: Annotated[int, Field(ge=0, le=256)] = 32
    # messages at QoS 1 and 2 that a client is sent before it acknowledges
    inflight_max: Annotated[int, Field(ge=1, le=32_767)] = 2_048
    # a QoS 0 subscriber that is further behind loses messages
    lag_count_max: Annotated[int, Field(ge=0, le=1 << 62)] = 1_000_000
    # which member of a shared subscription gets a message
    shared_strategy: Literal["round_robin", "sticky", "hash_client_id", "hash_topic"] = "round_robin"
    # subscriptions of one session, with those that ended while messages were under way
    subscription_count_max: Positive = 10_000
    response_prefix: TopicPrefix = ""  # MQTT 5 clients that ask for response information get PREFIX/CLIENT; empty: none
    client_id_bytes_max: Annotated[int, Field(ge=23, le=16_384)] = 1_024  # longest client identifier that is accepted
    session_expiry_s: Limit = 0  # time after which a persistent session without a connection ends, 0: never
    keep_alive_max_s: Annotated[int, Field(ge=0, le=65_535)] = 0  # longest keep-alive of MQTT 5 clients, 0: they choose
    # time between two publications of the $SYS tree, 0: no tree
    sys_interval_s: Annotated[int, Field(ge=0, le=86_400)] = 10
    messages_rate: Limit = 0  # messages a second that a client may publish, 0: any number
    bytes_rate: Limit = 0  # bytes of bodies a second that a client may publish, 0: any number
    messages_out_rate: Limit = 0  # messages a second that a client is sent, 0: any number
    bytes_out_rate: Limit = 0  # bytes of bodies a second that a client is sent, 0: any number
    connects_rate: Limit = 0  # clients a second that may connect, 0: any number
    client_connects_rate: Limit = 0  # connects a second of one client identifier of one user, 0: any number
    # messages at QoS 1 and 2 that wait for a client, over all subscriptions; then the oldest are dropped; 0: any
    # number
    queued_count_max: Limit = 0
    # bytes of bodies that wait for a client, over all subscriptions; then the oldest are dropped; 0: any number
    queued_bytes_max: Limit = 0
    delayed_max_s: Annotated[int, Field(ge=0, le=34_560_000)] = 4_294_967  # the longest delay of `$delayed/`
    retained_count_max: Limit = 0  # topics that may have a retained message, 0: any number
    retained_body_bytes_max: Limit = 0  # longest body of a retained message, 0: any
    rewrite: tuple[RewriteRule, ...] = ()  # rules that change topics; the first rule that matches a topic applies
    auto_subscribe: tuple[AutoSubscription, ...] = ()  # filters that each client is subscribed to when it connects


def _check_vhost_name(name: str) -> str:
    if len(name.encode()) > VHOST_BYTES_MAX:
        raise ValueError(f"the name of a virtual host has at most {VHOST_BYTES_MAX} bytes")
    return name


VhostName = Annotated[str, Field(min_length=1), AfterValidator(_check_vhost_name)]


class AmqpSettings(BaseModel, frozen=True, extra="forbid"):
    """The AMQP 0-9-1 door."""

    listen: Listen = "127.0.0.1:5672"  # HOST:PORT, port 0 picks one, `off` closes the door; or a list, see `listen`
    connections_max: Limit = 0  # open connections, 0: as many as file descriptors allow
    host_connections_max: Limit = 0  # open connections from one address, 0: no limit
    messages_rate: Limit = 0  # messages a second that a connection may publish, 0: any number
    bytes_rate: Limit = 0  # bytes of bodies a second that a connection may publish, 0: any number
    connects_rate: Limit = 0  # connections a second that are accepted, 0: any number
    messages_out_rate: Limit = 0  # messages a second that a connection is sent, 0: any number
    bytes_out_rate: Limit = 0  # bytes of bodies a second that a connection is sent, 0: any number
    heartbeat_s: Annotated[int, Field(ge=0, le=65_535)] = 60  # heartbeat interval that is offered to clients; 0: none
    frame_bytes_max: Annotated[int, Field(ge=4_096, le=1 << 20)] = 131_072  # largest frame that is offered to clients
    channels_max: Annotated[int, Field(ge=1, le=65_535)] = 2_047  # open channels of one connection
    body_bytes_max: Positive | None = None  # largest body; none: `store.message_bytes_max`
    handshake_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = 10_000  # time to log in and open the virtual host
    # the `product` that clients see in the server properties
    product: Annotated[str, Field(min_length=1, max_length=255)] = "LMQ Gateway"
    consumer_timeout_ms: Limit = 1_800_000  # time to acknowledge a delivery; 0: no limit
    vhosts: tuple[VhostName, ...] = ()  # virtual hosts that the start makes if they do not exist
    mqtt_vhost: VhostName = "/"  # the virtual host whose `amq.topic` has the topics of MQTT


class RocketmqSettings(BaseModel, frozen=True, extra="forbid"):
    """The RocketMQ door; one process answers as name server and as broker."""

    namesrv: NetworkListen = "127.0.0.1:9876"  # the name server's HOST:PORT, or `off`; or a list
    broker: NetworkListen = "127.0.0.1:10911"  # the broker's HOST:PORT, or `off`; or a list
    connections_max: Limit = 0  # open connections, 0: as many as file descriptors allow
    host_connections_max: Limit = 0  # open connections from one address, 0: no limit
    connects_rate: Limit = 0  # connections a second that are accepted, 0: any number
    messages_rate: Limit = 0  # messages a second that a connection may send, 0: any number
    bytes_rate: Limit = 0  # bytes of bodies a second that a connection may send, 0: any number
    messages_out_rate: Limit = 0  # messages a second that a connection gets by pulls and POP, 0: any number
    bytes_out_rate: Limit = 0  # bytes of bodies a second that a connection gets, 0: any number
    # host in routes, where clients can reach the gateway; empty: the host that each client used
    advertised_host: Host = ""
    advertised_port: Annotated[int, Field(ge=0, le=PORT_MAX)] = 0  # port in routes; 0: the broker's
    # name of the broker in routes; clients store offsets by it
    broker_name: Annotated[str, Field(pattern="^[a-zA-Z0-9_.-]+$")] = "lmq"
    cluster_name: Annotated[str, Field(pattern="^[a-zA-Z0-9_.-]+$")] = "DefaultCluster"  # name of the cluster in routes
    auto_create_topics: bool = True  # a send to an unknown topic makes it
    auto_topic_queues: Annotated[int, Field(ge=1, le=65_535)] = 8  # most queues of a topic that a send makes
    topics_max: Limit = 100_000  # topics that clients may make
    body_bytes_max: Annotated[int, Field(ge=1, le=16_000_000)] = 4_194_304  # largest body
    frame_bytes_max: Annotated[int, Field(ge=1024, le=16_777_216)] = 16_777_216  # largest request
    # a connection that is silent for so long is closed
    idle_timeout_ms: Annotated[int, Field(ge=1000, le=LIMIT_MAX)] = 120_000
    delay_levels: DelayLevels = DEFAULT_LEVELS  # delay of each level of a delayed message, from level 1 on
    transaction_timeout_ms: Positive = 6_000  # time until a producer is first asked how its transaction ended
    transaction_check_interval_ms: Positive = 30_000  # time between two such checks
    # number of checks, after which the transaction is given up
    transaction_checks_max: Annotated[int, Field(ge=1, le=1_000)] = 15


UserTag = Literal["administrator", "monitoring", "policymaker", "management"]
"""All; see all; what management may and policies; see, and change what its rights allow."""


class UserSettings(BaseModel, frozen=True, extra="forbid"):
    """One user, under `auth.users.NAME`; one of the two ways to give the password, the secret, or both."""

    password_hash: Secret = ""  # as `lmq hash-password` prints it
    password_env: str = ""  # the environment variable that holds the password
    # secret that the user's RocketMQ clients sign with (secretKey); it is in the file in plain text
    secret: Secret = ""
    secret_env: str = ""  # the environment variable that holds the secret
    may_publish: bool = True  # false: it may send no messages, whatever the rules say
    may_subscribe: bool = True  # false: it may read no messages, whatever the rules say
    # false: it may make and remove no queues and exchanges, whatever the rules say
    may_configure: bool = True
    tags: tuple[UserTag, ...] = ()  # rights of the user at the admin API; empty: it cannot log in there
    groups: tuple[str, ...] = ()  # groups of the user, for rules
    limits: UserLimitsSettings = UserLimitsSettings()


class AuthSettings(BaseModel, frozen=True, extra="forbid"):
    """Logins and rights."""

    mqtt_anonymous: bool = True  # let in MQTT clients without a user name; with any name while no user is known
    rocketmq_anonymous: bool = True  # let in RocketMQ clients without an AccessKey; with any while no user is known
    # let in the user guest with the password guest, from this machine only, at AMQP and the admin API
    amqp_guest: bool = True
    # answer read requests to the admin API without a login, from this machine, at addresses that only it can
    # reach
    admin_anonymous: bool = True
    behind_proxy: bool = False  # a proxy stands in front: no client counts as being on this machine
    users: dict[str, UserSettings] = {}  # users, by name; in the file as `[auth.users.NAME]`
    rules: tuple[RuleSettings, ...] = ()  # rights of clients: the first rule that matches a request decides it
    default: Literal["allow", "deny"] = "allow"  # decides requests that no rule matches
    open: bool = False  # let in clients without a login from other machines too, with all rights
    jwt: JwtSettings = JwtSettings()
    penalty: PenaltySettings = PenaltySettings()
    user_limits: UserLimitsSettings = UserLimitsSettings()
    backends: tuple[Backend, ...] = ()  # services that know more users; asked in order, after the users of the gateway


BridgeName = Annotated[str, Field(pattern="^[a-zA-Z0-9_.-]{1,64}$")]


class GatewaySettings(BaseModel, frozen=True, extra="forbid"):
    """All settings of one gateway."""

    data_dir: Folder = Path("data")  # folder for all data; made when it is missing
    store: StoreSettings = StoreSettings()
    mqtt: MqttSettings = MqttSettings()
    amqp: AmqpSettings = AmqpSettings()
    rocketmq: RocketmqSettings = RocketmqSettings()
    admin: AdminSettings = AdminSettings()
    auth: AuthSettings = AuthSettings()
    # bridges to other MQTT brokers, by name; in the file as `[bridges.NAME]`
    bridges: dict[BridgeName, BridgeSettings] = {}
    cache: CacheSettings = CacheSettings()
    log: LogSettings = LogSettings()
    audit: AuditSettings = AuditSettings()
    events: EventsSettings = EventsSettings()
    limits: LimitsSettings = LimitsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @model_validator(mode="after")
    def _check_limits(self) -> GatewaySettings:
        limit, stored = self.amqp.body_bytes_max, self.store.message_bytes_max
        if limit is not None and limit > stored:
            raise ValueError(f"amqp.body_bytes_max ({limit}) is more than store.message_bytes_max ({stored})")
        return self

    @model_validator(mode="after")
    def _check_addresses(self) -> GatewaySettings:
        doors = {"mqtt.listen": self.mqtt.listen, "amqp.listen": self.amqp.listen, "admin.listen": self.admin.listen}
        rocketmq = {"rocketmq.namesrv": self.rocketmq.namesrv, "rocketmq.broker": self.rocketmq.broker}
        listens = {**doors, **rocketmq}
        has_tokens = bool(self.auth.jwt.algorithms)
        wrong = find_twice(listens) or find_unknown(listens, self.auth.backends, has_tokens=has_tokens)
        if wrong:
            raise ValueError(wrong)
        return self

    @model_validator(mode="after")
    def _check_open(self) -> GatewaySettings:
        """Refuse to let in everybody on the network without a login, unless the settings say that this is meant."""
        auth = self.auth
        if auth.open or auth.default == "deny":
            return self
        for let, listen, name in (
            (auth.mqtt_anonymous, self.mqtt.listen, "mqtt"),
            (auth.rocketmq_anonymous, self.rocketmq.namesrv, "rocketmq"),
            (auth.rocketmq_anonymous, self.rocketmq.broker, "rocketmq"),
        ):
            found = find_open(listen, f"auth.{name}_anonymous", lets=let)
            if found is not None:
                raise ValueError(
                    f"{found}: make it false and give users, or say with auth.open = true that this is meant"
                )
        return self


def walk_settings(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the dotted name of every setting in `model` with the model that holds it, in the order of the source."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from walk_settings(kind, f"{prefix}{name}.")
        else:
            yield prefix + name, model
