"""What every door has: all that the gateway's other parts know of a protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

from core.metrics import DoorMetrics
from gateway.address import UNIX_MODE
from gateway.auth.recheck import Visitor
from gateway.inventory import Inventory
from gateway.net.paces import ListenerRates
from gateway.net.protocol import ConnectionHandler, HandlerFactory, Transport
from gateway.settings.listen import ListenSettings, MqttListenSettings, NameSource, Network, TlsSettings, find_listens
from gateway.settings.models import GatewaySettings
from gateway.settings.way_names import Ways

ADMIN = "admin"  # what the operators' door is called, which has no protocol of ours
Address = tuple[str, int]


class ClientLimits(NamedTuple):
    """What holds for each client of an address, 0 for what the door's settings say."""

    messages_rate: int = 0  # that it may publish
    bytes_rate: int = 0  # of their bodies
    packet_bytes_max: int = 0  # largest packet that is taken of it
    inflight_max: int = 0  # messages at QoS 1 and 2 that it is sent and has not acknowledged
    messages_out_rate: int = 0  # that it is sent
    bytes_out_rate: int = 0  # of their bodies
    queued_count_max: int = 0  # messages at QoS 1 and 2 that wait for its session
    queued_bytes_max: int = 0  # of their bodies


class Listen(NamedTuple):
    """One address that a door listens on.

    Args:
        name: What operators call it: the first word after `listening` when the gateway starts.
        address: HOST:PORT, port 0 picks one, or `unix:PATH`.
        tls: What it is secured by; None: it is not.
        proxies: Networks of the proxies in front of it, which name their peers; empty: peers connect by themselves.
        clients: What holds for each of its clients.
        connections_max: Open at once by it, 0 for no limit of its own.
        rates: What holds for all its clients together.
        websocket: The path of a WebSocket that carries the protocol; empty: nothing does.
        client_id_from: Where a client's certificate has the client identifier; None: nowhere.
        ways: The authenticators that count there; None: all.
        mode: The rights of the file of a Unix socket.
    """

    name: str
    address: str
    tls: TlsSettings | None = None
    proxies: tuple[Network, ...] = ()
    websocket: str = ""
    clients: ClientLimits = ClientLimits()
    connections_max: int = 0
    rates: ListenerRates = ListenerRates()
    client_id_from: NameSource | None = None
    ways: Ways = None
    mode: int = UNIX_MODE


def find_listening(name: str, setting: str | Sequence[ListenSettings]) -> list[Listen]:
    """Return the addresses of a setting `listen`, all of one name; none where it is off."""
    return [_make_listen(name, entry) for entry in find_listens(setting)]


def _make_listen(name: str, entry: ListenSettings) -> Listen:
    listen = Listen(
        name,
        entry.address,
        entry.tls,
        entry.proxies,
        connections_max=entry.connections_max,
        rates=ListenerRates(
            entry.connects_rate,
            entry.total_messages_rate,
            entry.total_bytes_rate,
            entry.total_messages_out_rate,
            entry.total_bytes_out_rate,
        ),
        ways=entry.ways,
        mode=int(entry.mode, 8) if entry.mode else UNIX_MODE,
    )
    if not isinstance(entry, MqttListenSettings):
        return listen
    clients = ClientLimits(
        entry.messages_rate,
        entry.bytes_rate,
        entry.packet_bytes_max,
        entry.inflight_max,
        entry.messages_out_rate,
        entry.bytes_out_rate,
        entry.queued_count_max,
        entry.queued_bytes_max,
    )
    return listen._replace(websocket=entry.websocket, clients=clients, client_id_from=entry.client_id_from)


class Interval(NamedTuple):
    """Work that a door does again and again; the first time one interval after the start."""

    interval_ms: int
    work: Callable[[int], None]


class ConnectionSettings(Protocol):
    """What a door's settings say of its connections, all addresses together; 0 for no limit of its own."""

    @property
    def connections_max(self) -> int:
        """Open at once."""

    @property
    def host_connections_max(self) -> int:
        """Open at once from one address."""


class Door(ABC):
    """One protocol's door.

    The gateway makes it, calls `start`, listens on the addresses that `listens` names, and calls `on_listening` with
    what was bound; from then on `connect` gives each new connection its handler. All calls are made on the loop.
    """

    name: ClassVar[str]  # of its metrics, and of its users in the authenticator
    metrics: DoorMetrics

    @property
    @abstractmethod
    def limits(self) -> ConnectionSettings:
        """How many connections may be open; asked again after `reload`."""

    @property
    def accepts_rate(self) -> int:
        """How many connections a second are accepted, 0 for any number; asked again after `reload`."""
        return 0

    @property
    @abstractmethod
    def handlers(self) -> Iterable[Visitor]:
        """The connections whose clients have logged in."""

    @abstractmethod
    def connect(self, transport: Transport) -> ConnectionHandler:
        """Return the handler of a new connection."""

    def connect_at(self, listen: Listen) -> HandlerFactory:
        """Return what gives new connections of one address their handlers."""
        del listen
        return self.connect

    def refuser(self) -> HandlerFactory | None:
        """Return what gives connections their handlers that are too many, to tell them; None where nothing is told."""
        return None

    @abstractmethod
    def start(self, now_ms: int) -> None:
        """Load what is durable; before anything is listened on."""

    @abstractmethod
    def on_started(self, now_ms: int) -> None:
        """Publish what a process before left to be published: every door has loaded where its messages go."""

    @abstractmethod
    def stop(self, now_ms: int) -> None:
        """Say farewell to all connections, and finish what is done in steps."""

    @abstractmethod
    def let_go(self) -> None:
        """Take apart what the collector of cycles cannot, when the store is closed; the process may go on."""

    @abstractmethod
    def reload(self, settings: GatewaySettings) -> None:
        """Go by other settings from now on; those that cannot change while the gateway runs are as before."""

    @abstractmethod
    def listens(self) -> list[Listen]:
        """Return the addresses that the settings name, those of one name in their order."""

    @abstractmethod
    async def on_listening(self, bound: Mapping[str, Address]) -> None:
        """Take note of what the door listens on now: where the first of each name is bound."""

    @abstractmethod
    def intervals(self) -> list[Interval]:
        """Return what is to be done again and again."""

    @abstractmethod
    def tend(self, now_ms: int) -> None:
        """Let go of what is past its time, so that its room can be used: every 10 s, and when the disk gets low."""

    @abstractmethod
    def read_departed(self) -> None:
        """Read on from connections that are held back while the disk is low on room, and whose peers are gone."""

    def end_sessions_of(self, user: str) -> None:
        """End what a user that is no more, or disabled, has beyond its connections; nothing where a door keeps none."""
        del user

    @abstractmethod
    def inventory(self) -> Inventory:
        """Return what the door has, for operators."""
