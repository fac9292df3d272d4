"""The ways in that ask for no secret: anonymous clients, AMQP's guest, and the admin API's questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from gateway.address import is_loopback
from gateway.auth.credentials import GUEST, Credentials
from gateway.settings.models import AuthSettings
from gateway.settings.way_names import ANONYMOUS, GUEST_LOGIN, Ways

PROXY_NOTE = "with a proxy in front set auth.behind_proxy, or everybody is"


class OpenWays:
    """Which of these ways are open by the settings.

    Args:
        settings: Which users may come in, and how.
    """

    def __init__(self, settings: AuthSettings) -> None:
        self.settings = settings
        self.listeners: Mapping[str, Sequence[Ways]] = {}  # by door, the ways in that each has

    def is_guest(self, credentials: Credentials) -> bool:
        """Return whether this is AMQP's guest, let in where no user has that name."""
        return (
            credentials.protocol == "amqp"
            and credentials.user == GUEST
            and credentials.password == b"guest"
            and is_loopback(credentials.peer)
            and self.lets_guest_in(credentials.ways)
        )

    def lets_guest_in(self, ways: Ways = None) -> bool:
        """Return whether guest is let in where no user is called so, by a listener that has these ways in."""
        is_open = self.settings.amqp_guest if ways is None else GUEST_LOGIN in ways
        return is_open and not self.settings.behind_proxy

    def lets_guest_be(self, *doors: str) -> bool:
        """Return whether guest comes in by some listener of these doors."""
        return any(self.lets_guest_in(ways) for door in doors for ways in self.ways_of(door))

    def ways_of(self, door: str) -> Sequence[Ways]:
        """Return the authenticators of each listener of a door, None where all count."""
        return self.listeners.get(door) or (None,)

    def lets_anonymous_in(self, protocol: str, ways: Ways = None) -> bool:
        """Return whether clients of a protocol are let in that are nobody in particular, by a listener."""
        if ways is not None:
            return ANONYMOUS in ways
        if protocol == "mqtt":
            return self.settings.mqtt_anonymous
        return protocol == "rocketmq" and self.settings.rocketmq_anonymous

    def lets_anonymous_be(self, protocol: str) -> bool:
        """Return whether such clients come in by some listener of a protocol."""
        return any(self.lets_anonymous_in(protocol, ways) for ways in self.ways_of(protocol))

    def lets_be_anonymous(self, credentials: Credentials, *, has_names: bool) -> bool:
        """Return whether a client is let in as no particular user: with a name only where no name means anything.

        So the client of a deleted user does not come back, and a name that is mistyped is wrong.
        """
        is_let = self.lets_anonymous_in(credentials.protocol, credentials.ways)
        return is_let and not (credentials.user and has_names)

    def lets_look(self, peer: str, ways: Ways = None) -> bool:
        """Return whether the admin API answers questions of a peer that gives no name."""
        is_open = self.settings.admin_anonymous if ways is None else ANONYMOUS in ways
        return is_open and not self.settings.behind_proxy and is_loopback(peer)

    def describe(self, doors: Collection[str]) -> list[str]:
        """Return one line for each way that is open at these doors; logged at the start."""
        ways = (
            ("mqtt", self.lets_anonymous_be("mqtt"), "MQTT clients are let in without a login", "mqtt_anonymous"),
            (
                "rocketmq",
                self.lets_anonymous_be("rocketmq"),
                "RocketMQ clients are let in unasked",
                "rocketmq_anonymous",
            ),
            (
                "amqp",
                self.lets_guest_be("amqp"),
                f"AMQP user guest is let in from this machine; {PROXY_NOTE}",
                "amqp_guest",
            ),
        )
        return [
            f"{text} setting={self._find_cause(door, setting)}"
            for door, is_open, text, setting in ways
            if is_open and door in doors
        ]

    def _find_cause(self, door: str, setting: str) -> str:
        is_general = getattr(self.settings, setting) and None in self.ways_of(door)
        return f"auth.{setting}" if is_general else "listen.authenticators"
