"""The setting `listen` of each door: one address as text, or a list of addresses that may have TLS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Field, Tag, model_validator

from core.settings import Limit
from gateway.address import UNIX, UNIX_MODE, PortError, check_host, parse_address
from gateway.settings.way_names import CERTIFICATE, Ways

OFF = "off"
ANY_PATH = "*"
OWN_RIGHTS = 0o600  # to connect one must be able to write
TAGS = ("listen-text", "listen-list")  # of the two ways to write the setting, in pydantic's errors; no operator's words


def _as_network(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return ip_network(value)
    except ValueError as error:
        raise ValueError(f"must be an address or a network, such as 10.0.0.0/8: {error}") from error


Network = Annotated[IPv4Network | IPv6Network, BeforeValidator(_as_network)]
NameSource = Literal["common_name", "subject", "email", "dns", "uri"]


def find_address(listen: str) -> tuple[str, int] | None:
    """Return host and port of an address, None for `off`; of a Unix socket `unix:PATH` and 0.

    Raises:
        ValueError: It is neither.
    """
    if listen.startswith(UNIX):
        return listen, 0
    return None if listen == OFF else parse_address(listen)


def _check_address(text: str) -> str:
    try:
        address = find_address(text)
    except PortError:
        raise
    except ValueError as error:
        raise ValueError("must be HOST:PORT (port 0 picks one) or off") from error
    if address and ":" in address[0] and not text.startswith(("[", UNIX)):
        raise ValueError("an IPv6 host needs brackets: [::1]:1883")
    if text == UNIX:
        raise ValueError("must name a path: unix:/run/lmq/mqtt.sock")
    return text


def _check_network(text: str) -> str:
    if text.startswith(UNIX):
        raise ValueError("must be HOST:PORT (port 0 picks one) or off; a Unix socket is for MQTT and AMQP")
    return text


def _check_path(text: str) -> str:
    if text and text != ANY_PATH and not text.startswith("/"):
        raise ValueError("must be a path that begins with /, such as /mqtt, or * for any")
    return text


def _check_mode(text: str) -> str:
    try:
        mode = int(text, 8) if text else UNIX_MODE
    except ValueError as error:
        raise ValueError("must be rights in octal, such as 0660") from error
    if mode & OWN_RIGHTS != OWN_RIGHTS or mode & ~UNIX_MODE:
        raise ValueError("must let the gateway's own user read and write, and nobody run it: such as 0660 or 0600")
    return text


def _check_listed(text: str) -> str:
    if text == OFF:
        raise ValueError("must be HOST:PORT (port 0 picks one); an empty list closes the door")
    return text


Address = Annotated[str, AfterValidator(_check_address)]
NetworkAddress = Annotated[Address, AfterValidator(_check_network)]
Host = Annotated[str, AfterValidator(check_host)]  # that clients are told


class CertificateSettings(BaseModel, frozen=True, extra="forbid"):
    """One more certificate of an address, of its list `more_certificates`."""

    certificate: Path  # PEM file with the certificate for other hosts, followed by the chain to its authority
    key: Path | None = None  # its private key, without a pass phrase; none: it is in the file of the certificate

    def __str__(self) -> str:
        """Return the files."""
        return str(self.certificate) if self.key is None else f"{self.certificate} and {self.key}"


class TlsSettings(BaseModel, frozen=True, extra="forbid"):
    """TLS of one address, `tls` in its table.

    The files are in the PEM format. They are read again when they change, and at SIGHUP.
    """

    certificate: Path  # PEM file with the server's certificate, followed by the chain to its authority
    key: Path | None = None  # its private key, without a pass phrase; none: it is in the file of the certificate
    # certificates for other host names (SNI): the first that matches, else `certificate`
    more_certificates: tuple[CertificateSettings, ...] = ()
    # PEM file of the authorities for client certificates; none: clients need no certificate
    client_ca: Path | None = None
    # whether clients need a certificate, with `client_ca`
    client_certificate: Literal["required", "optional"] = "required"
    # file with the revocation lists of those authorities, one for each that signs client certificates
    crl: Path | None = None
    # field of the client's certificate that names its user, who then needs no password; of several names the
    # first
    user_from: NameSource | None = None
    name_is_user: bool = False  # the same as `user_from = "common_name"`
    version_min: Literal["1.2", "1.3"] = "1.2"  # the oldest TLS that clients may use
    ciphers: str = ""  # ciphers of TLS 1.2, in OpenSSL's syntax; empty: OpenSSL's defaults
    alpn_required: bool = False  # refuse clients that do not offer the door's protocol by ALPN: mqtt, amqp or http/1.1
    # also accept clients without TLS at this port; none: only RocketMQ's door does, without client_ca
    optional: bool | None = None

    @model_validator(mode="after")
    def _check_authority(self) -> TlsSettings:
        if self.name_is_user and self.user_from not in {None, "common_name"}:
            raise ValueError("name_is_user means user_from = 'common_name', but user_from says something else")
        for name in ("name_is_user", "user_from", "crl"):
            if getattr(self, name) and self.client_ca is None:
                raise ValueError(f"{name} needs client_ca: without it the name in a certificate is not verified")
        return self

    def __str__(self) -> str:
        """Return what is set, in one line."""
        fields = type(self).model_fields.items()
        special = [(name, getattr(self, name)) for name, field in fields if getattr(self, name) != field.default]
        return " ".join(f"{name}={_shown(value)}" for name, value in special)


class ListenSettings(BaseModel, frozen=True, extra="forbid"):
    """One address of a list `listen`; an address without anything else may be written as text."""

    address: Annotated[Address, AfterValidator(_check_listed)]  # HOST:PORT, port 0 picks one; or unix:PATH
    # rights of the file of a Unix socket, in octal, such as 0660; empty: 0666, all who reach its folder may connect
    mode: Annotated[str, AfterValidator(_check_mode)] = ""
    # TLS for this address; none: connections are neither private nor protected from changes
    tls: TlsSettings | None = None
    proxies: tuple[Network, ...] = ()  # networks of proxies that name their clients by the PROXY protocol: 10.0.0.0/8
    # the only ways to log in here: users, certificate, jwt, backends (or one of them by its name), guest,
    # anonymous, api_tokens; empty: all, and `auth` says whether clients without a login come in
    authenticators: tuple[str, ...] = ()
    connections_max: Limit = 0  # open connections at this address, 0: no limit of its own
    connects_rate: Limit = 0  # connections a second at this address; more are refused; 0: any number
    total_messages_rate: Limit = 0  # messages a second that all clients of this address publish, 0: any number
    total_bytes_rate: Limit = 0  # bytes of bodies a second that all clients of this address publish, 0: any number
    total_messages_out_rate: Limit = 0  # messages a second that all clients of this address are sent, 0: any number
    total_bytes_out_rate: Limit = 0  # bytes of bodies a second that all clients of this address are sent, 0: any number

    @model_validator(mode="after")
    def _check_socket(self) -> ListenSettings:
        if self.mode and not self.address.startswith(UNIX):
            raise ValueError("mode is for the file of a Unix socket: address = 'unix:PATH'")
        return self

    @model_validator(mode="after")
    def _check_certificate(self) -> ListenSettings:
        """Refuse where a certificate is to say who the user is and may not, or may and does not."""
        is_named = self.tls is not None and (self.tls.user_from is not None or self.tls.name_is_user)
        if self.authenticators and is_named != (CERTIFICATE in self.authenticators):
            raise ValueError(f"tls.user_from, and '{CERTIFICATE}' in authenticators, need one another")
        return self

    @property
    def ways(self) -> Ways:
        """The authenticators that count here, None: all."""
        return frozenset(self.authenticators) or None

    def __str__(self) -> str:
        """Return the address and what is special of it, in one line."""
        special = [
            f"{name} {_shown(getattr(self, name))}"
            for name, field in type(self).model_fields.items()
            if name != "address" and getattr(self, name) != field.default
        ]
        return f"{self.address} ({', '.join(special)})" if special else self.address


class MqttListenSettings(ListenSettings, frozen=True, extra="forbid"):
    """One address of a list `listen`. Fields from `websocket` on are for MQTT only."""

    # path of MQTT over WebSocket, such as /mqtt; *: any path; empty: no WebSocket here
    websocket: Annotated[str, AfterValidator(_check_path)] = ""
    # field of the client's certificate with the only client identifier that it may use; none: it may use any
    client_id_from: NameSource | None = None
    messages_rate: Limit = 0  # `mqtt.messages_rate` of clients of this address; 0: the general one
    bytes_rate: Limit = 0  # `mqtt.bytes_rate` of clients of this address; 0: the general one
    messages_out_rate: Limit = 0  # `mqtt.messages_out_rate` of clients of this address; 0: the general one
    bytes_out_rate: Limit = 0  # `mqtt.bytes_out_rate` of clients of this address; 0: the general one
    # `mqtt.packet_bytes_max` of clients of this address; 0: the general one
    packet_bytes_max: Annotated[int, Field(ge=0, le=268_435_460)] = 0
    # `mqtt.inflight_max` of clients of this address, if less than the general one; 0: the general one
    inflight_max: Annotated[int, Field(ge=0, le=32_767)] = 0
    # `mqtt.queued_count_max` of clients of this address, if less than the general one; 0: the general one
    queued_count_max: Limit = 0
    # `mqtt.queued_bytes_max` of clients of this address, if less than the general one; 0: the general one
    queued_bytes_max: Limit = 0

    @model_validator(mode="after")
    def _check_identifier(self) -> MqttListenSettings:
        if self.client_id_from is not None and (self.tls is None or self.tls.client_ca is None):
            raise ValueError("client_id_from needs tls with client_ca: it reads the client's certificate")
        return self


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


class Reached(Protocol):
    """What is read of an address that is listened on."""

    @property
    def address(self) -> str:
        """HOST:PORT, or `unix:PATH`."""

    @property
    def tls(self) -> TlsSettings | None:
        """What it is secured by."""


def is_beyond(entry: Reached) -> bool:
    """Return whether others than this machine reach an address that asks clients for no certificate."""
    found, tls = find_address(entry.address), entry.tls
    asks = tls is not None and tls.client_ca is not None and tls.client_certificate == "required" and not tls.optional
    return found is not None and not asks and not _is_of_this_machine(found[0])


def find_twice(listens: Mapping[str, str | Sequence[str | ListenSettings]]) -> str | None:
    """Return what is wrong where two of these settings, or one of them twice, name the same address; else None."""
    users: dict[tuple[str, int], str] = {}
    for name, listen in listens.items():
        for one in [listen] if isinstance(listen, str) else listen:
            text = one if isinstance(one, str) else one.address
            address = find_address(text)
            if address is None or (not address[1] and not text.startswith(UNIX)):
                continue
            other = users.get(address)
            if other is not None:
                return f"{name} has {text} twice" if other == name else f"{other} and {name} are both {text}"
            users[address] = name
    return None


def _is_of_this_machine(host: str) -> bool:
    if host.startswith(UNIX) or host == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


LISTED = [*MqttListenSettings.model_fields, *(f"tls.{name}" for name in TlsSettings.model_fields)]


def _as_table(value: object) -> object:
    return {"address": value} if isinstance(value, str) else value


def _check_on_network(entry: ListenSettings) -> ListenSettings:
    _check_network(entry.address)
    return entry


def _kind(value: Any) -> str:  # noqa: ANN401 - whatever stands in the file
    return TAGS[0] if isinstance(value, str) else TAGS[1]


Listen = Annotated[
    Annotated[Address, Tag(TAGS[0])]
    | Annotated[tuple[Annotated[ListenSettings, BeforeValidator(_as_table)], ...], Tag(TAGS[1])],
    Discriminator(_kind),
]
MqttListen = Annotated[
    Annotated[Address, Tag(TAGS[0])]
    | Annotated[tuple[Annotated[MqttListenSettings, BeforeValidator(_as_table)], ...], Tag(TAGS[1])],
    Discriminator(_kind),
]
NetworkListen = Annotated[
    Annotated[NetworkAddress, Tag(TAGS[0])]
    | Annotated[
        tuple[Annotated[ListenSettings, BeforeValidator(_as_table), AfterValidator(_check_on_network)], ...],
        Tag(TAGS[1]),
    ],
    Discriminator(_kind),
]


def _check_admin(entry: ListenSettings) -> ListenSettings:
    for name in ListenSettings.model_fields:
        if name.startswith("total_") and getattr(entry, name):
            raise ValueError(f"{name} is not for the admin door, which carries no stream of messages")
    return entry


AdminListen = Annotated[
    Annotated[NetworkAddress, Tag(TAGS[0])]
    | Annotated[
        tuple[
            Annotated[
                ListenSettings,
                BeforeValidator(_as_table),
                AfterValidator(_check_on_network),
                AfterValidator(_check_admin),
            ],
            ...,
        ],
        Tag(TAGS[1]),
    ],
    Discriminator(_kind),
]


class AdminSettings(BaseModel, frozen=True, extra="forbid"):
    """The operator's door: HTTP API, metrics, health."""

    listen: AdminListen = "127.0.0.1:15672"  # HOST:PORT, port 0 picks one, `off` closes the door; or a list
    connects_rate: Limit = 0  # connections a second that are accepted, 0: any number
    fan_out_report: str = ""  # the folder that `lmq report fan-out --out` writes to; the console shows its page


def find_listens(listen: str | Sequence[ListenSettings]) -> Sequence[ListenSettings]:
    """Return the addresses of a setting `listen`; none where the door is closed."""
    if isinstance(listen, str):
        return [] if listen == OFF else [ListenSettings(address=listen)]
    return listen
