"""The ways in that ask for no secret: anonymous clients, AMQP's guest, and the admin API's questions."""

from __future__ import annotations

from collections.abc import Collection

from gateway.address import is_loopback
from gateway.auth.credentials import GUEST, Credentials
from gateway.settings import AuthSettings

PROXY_NOTE = "with a proxy in front set auth.behind_proxy, or everybody is"


class OpenWays:
    """Which of these ways are open by the settings.

    Args:
        settings: Who may come in.
    """

    def __init__(self, settings: AuthSettings) -> None:
        self.settings = settings

    def is_guest(self, credentials: Credentials) -> bool:
        """Return whether somebody comes as AMQP's guest, who is let in where no user is called so."""
        return (
            credentials.protocol == "amqp"
            and credentials.user == GUEST
            and credentials.password == b"guest"
            and is_loopback(credentials.peer)
            and self.lets_guest_in()
        )

    def lets_guest_in(self) -> bool:
        """Return whether guest is let in where no user is called so."""
        return self.settings.amqp_guest and not self.settings.behind_proxy

    def lets_anonymous_in(self, protocol: str) -> bool:
        """Return whether clients of a protocol are let in that are nobody in particular."""
        if protocol == "mqtt":
            return self.settings.mqtt_anonymous
        return protocol == "rocketmq" and self.settings.rocketmq_anonymous

    def lets_be_anonymous(self, credentials: Credentials, *, has_names: bool) -> bool:
        """Return whether somebody is let in as nobody in particular: with a name only where no name means anything.

        So the client of a user who is deleted does not come back, and a name that is mistyped is wrong.
        """
        return self.lets_anonymous_in(credentials.protocol) and not (credentials.user and has_names)

    def lets_look(self, peer: str) -> bool:
        """Return whether the admin API answers questions of a peer that does not say who it is."""
        return self.settings.admin_anonymous and not self.settings.behind_proxy and is_loopback(peer)

    def describe(self, doors: Collection[str]) -> list[str]:
        """Return one line for each way that is open at these doors; logged at the start."""
        settings = self.settings
        ways = (
            ("mqtt", settings.mqtt_anonymous, "MQTT clients are let in without a login setting=auth.mqtt_anonymous"),
            (
                "rocketmq",
                settings.rocketmq_anonymous,
                "RocketMQ clients are let in unasked setting=auth.rocketmq_anonymous",
            ),
            (
                "amqp",
                self.lets_guest_in(),
                f"AMQP user guest is let in from this machine; {PROXY_NOTE} setting=auth.amqp_guest",
            ),
        )
        return [text for door, is_open, text in ways if is_open and door in doors]
