"""The broker's settings by RocketMQ's names: shown, and those that can change while it runs, changed.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from collections.abc import Callable

from core.settings import RetentionSettings
from gateway.auth.rule import CLUSTER
from gateway.events import Kind
from gateway.plain_errors import tell_first
from gateway.retention import Retention
from gateway.rocketmq.admin.works import AdminPeer
from gateway.rocketmq.errors import CommandRefusedError
from gateway.settings.models import RocketmqSettings
from lmq.remoting.commands import Command, answer
from lmq.remoting.response_codes import ResponseCode

CHANGEABLE = {
    "autoCreateTopicEnable": "auto_create_topics",
    "defaultTopicQueueNums": "auto_topic_queues",
    "maxMessageSize": "body_bytes_max",
    "messageDelayLevel": "delay_levels",
    "transactionCheckInterval": "transaction_check_interval_ms",
    "transactionCheckMax": "transaction_checks_max",
    "transactionTimeOut": "transaction_timeout_ms",
}
"""Settings that hold for what is open, by RocketMQ's names."""

OF_RETENTION = {"deleteWhen": "delete_hours", "fileReservedTime": "age_hours"}
"""Those of the log, by RocketMQ's names."""

TEXT_BYTES_MAX = 65_536  # chosen: a tool sends the few settings that change


class BrokerSettings:
    """Answers 25, 26, 318 and 319.

    Args:
        current: Gives the door's settings as they are now.
        apply: Lets others hold from now on, until the settings are loaded again.
        retention: The log's.
    """

    def __init__(
        self,
        current: Callable[[], RocketmqSettings],
        apply: Callable[[RocketmqSettings], None],
        retention: Retention,
    ) -> None:
        self._current = current
        self._apply = apply
        self._retention = retention

    def show(self, request: Command, peer: AdminPeer, address: str) -> Command:
        """Answer with the settings, a line each."""
        _check_right(peer, "see")
        settings = self._current()
        retention = self._retention.settings
        host, _, port = address.rpartition(":")
        shown = {
            "autoCreateTopicEnable": str(settings.auto_create_topics).lower(),
            "brokerClusterName": settings.cluster_name,
            "brokerIP1": host,
            "brokerId": "0",
            "brokerName": settings.broker_name,
            "brokerRole": "ASYNC_MASTER",
            "deleteWhen": ";".join(f"{hour:02}" for hour in retention.delete_hours),
            "defaultTopicQueueNums": str(settings.auto_topic_queues),
            "enableLmq": "true",
            "enableMultiDispatch": "true",
            "enablePropertyFilter": "true",
            "fileReservedTime": str(retention.age_hours),
            "listenPort": port,
            "maxMessageSize": str(settings.body_bytes_max),
            "messageDelayLevel": settings.delay_levels,
            "transactionCheckInterval": str(settings.transaction_check_interval_ms),
            "transactionCheckMax": str(settings.transaction_checks_max),
            "transactionTimeOut": str(settings.transaction_timeout_ms),
        }
        text = "".join(f"{name}={value}\n" for name, value in sorted(shown.items()))
        return answer(request, ResponseCode.SUCCESS, ext={"version": "0"}, body=text.encode())

    def change(self, request: Command, peer: AdminPeer) -> Command:
        """Change settings, all that the request names or none."""
        _check_right(peer, "change")
        wanted = _read_lines(request)
        changeable = sorted([*CHANGEABLE, *OF_RETENTION])
        unknown = sorted(wanted.keys() - set(changeable))
        if unknown:
            remark = f"{unknown[0][:64]} cannot be changed while the broker runs: {', '.join(changeable)} can"
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, remark)
        changes = {CHANGEABLE[name]: value for name, value in wanted.items() if name in CHANGEABLE}
        kept: dict[str, str | list[str]] = {
            OF_RETENTION[name]: value for name, value in wanted.items() if name in OF_RETENTION
        }
        if "deleteWhen" in wanted:
            kept["delete_hours"] = [hour.strip() for hour in wanted["deleteWhen"].split(";") if hour.strip()]
        try:
            changed = RocketmqSettings.model_validate(self._current().model_dump() | changes)
            retention = RetentionSettings.model_validate(self._retention.settings.model_dump() | kept)
        except ValueError as error:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, tell_first(error)) from error
        self._apply(changed)
        if kept:
            self._retention.use(retention)
        peer.actor().tell(Kind.SETTINGS_CHANGED, names=sorted(wanted))
        return answer(request, ResponseCode.SUCCESS)


def _check_right(peer: AdminPeer, what: str) -> None:
    if not peer.may_configure(b"broker", CLUSTER):
        raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to {what} the settings")


def _read_lines(request: Command) -> dict[str, str]:
    """Return the names and values of Java's properties text.

    Raises:
        CommandRefusedError: It is none, or empty.
    """
    if len(request.body) > TEXT_BYTES_MAX:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"the body has more than {TEXT_BYTES_MAX} bytes")
    found: dict[str, str] = {}
    for line in bytes(request.body).decode(errors="replace").splitlines():
        name, separator, value = line.partition("=")
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        if not separator:
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, "string2Properties error")
        found[name.strip()] = value.strip()
    if not found:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, "string2Properties error")
    return found
