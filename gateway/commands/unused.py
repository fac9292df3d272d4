"""Options that a command would take and not heed: they are refused, with a sentence, before the command runs.

What stands in the environment is for many commands, so it is never refused. The same holds for defaults.
"""

from __future__ import annotations

from typing import Any, NoReturn

from typer.core import TyperGroup

from gateway.commands.refusing import refuse

SAID = "COMMANDLINE"  # the place that click gives for a value of the command line
ASKING = frozenset({"admin", "user", "password"})  # parameters of a command that asks the admin API
AT_DOOR = frozenset({"door", "server", "tls"})  # parameters of a command that is a client of a door
OF_ROOT = ("url", "token")
NEEDS = {"rounds": "scram", "logger": "wanted", "key": "cert"}  # the first is nothing without the second
INSTEAD = {"everything": ("configure", "write", "read")}  # the first says all that the others would
MQTT, AMQP, ROCKETMQ = "mqtt", "amqp", "rocketmq"
DOORS = {
    "client": (MQTT,),
    "content_type": (MQTT, AMQP),
    "exchange": (AMQP,),
    "expires": (MQTT, AMQP),
    "group": (MQTT, ROCKETMQ),
    "keys": (ROCKETMQ,),
    "retain": (MQTT,),
    "tags": (ROCKETMQ,),
    "vhost": (AMQP,),
}


class CheckedGroup(TyperGroup):
    """A group of commands, each of which refuses what it would not heed."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - typer's
        super().__init__(**given)
        for command in self.commands.values():
            if not isinstance(command, TyperGroup):
                _check_first(command)


def _check_first(command: Any) -> None:  # noqa: ANN401 - typer's own kind of command is not public, here and below
    run = command.invoke

    def invoke(ctx: Any) -> Any:  # noqa: ANN401 - as above
        _Line(ctx).check()
        return run(ctx)

    command.invoke = invoke


class _Line:
    """The command line of one command.

    Args:
        ctx: The command's context.
    """

    def __init__(self, ctx: Any) -> None:  # noqa: ANN401 - as above
        self._values: dict[str, Any] = ctx.params
        self._labels = {one.name: max(one.opts, key=len) for one in ctx.command.params}
        self._said = _said_in(ctx)
        self._said_first = _said_in(ctx.find_root()).intersection(OF_ROOT)  # before the command's name
        self._labels |= {name: f"--{name}" for name in OF_ROOT}

    def check(self) -> None:
        """Refuse the first option that would not be heeded."""
        if self._values.keys() >= ASKING:
            self._check_asking()
        elif self._said_first:
            more = "; --server names the door" if self._values.keys() >= AT_DOOR else ""
            self._refuse(
                min(self._said_first), f"is for commands that ask a gateway's admin API, not for this one{more}"
            )
        if self._values.keys() >= AT_DOOR:
            self._check_door()
        for name, needed in NEEDS.items():
            if name in self._said and needed in self._values and not self._values[needed]:
                self._refuse(name, f"needs {self._labels[needed]}")
        for name, others in INSTEAD.items():
            for other in others:
                if self._values.get(name) and other in self._said:
                    self._refuse(other, f"is part of {self._labels[name]}: leave one of the two out")
        if "output" in self._said and self._values.get("as_json") and self._values["output"] != "json":
            self._refuse("output", "says another form than --json: leave one of the two out")

    def _check_asking(self) -> None:
        said, values = self._said | self._said_first, self._values
        about_gateway = sorted(said.intersection({*ASKING, *OF_ROOT}))
        if about_gateway and values.get("server") is False:
            self._refuse(about_gateway[0], "needs --server: the packages are those of this machine")
        if {"url", "admin"} <= said:
            self._refuse("admin", "names a gateway, as --url does: leave one of the two out")
        if {"token", "user"} <= said:
            self._refuse("user", "logs in, as --token does: leave one of the two out")
        if "password" in said and values["user"] is None:
            new = "; for the new password use the prompt, --password-stdin or --generate"
            self._refuse("password", f"is for --user{new if 'password_stdin' in values else ''}")
        if "secrets" in values:  # of the settings, which are read here unless a gateway is named
            self._check_settings(said)

    def _check_settings(self, said: set[str]) -> None:
        if values_of_gateway := said.intersection({"url", "admin"}):
            for name in ("config", "secrets"):
                if name in said:
                    where = self._labels[min(values_of_gateway)]
                    self._refuse(name, f"is for settings of this machine, and {where} names a gateway")
        for name in ("token", "user", "password"):
            if name in said and not values_of_gateway:
                self._refuse(name, "is for a gateway: name it by --admin")

    def _check_door(self) -> None:
        door = str(self._values["door"])
        for name, doors in DOORS.items():
            if name in self._said and door not in doors:
                self._refuse(name, f"is for {' and '.join(doors)}, not for {door}")
        only_reads = "names" in self._values  # the messages come as queues and topics of the other doors give them
        counts_answers = door == ROCKETMQ and "size" not in self._values and "target" not in self._values
        if "qos" in self._said and ((only_reads and door != MQTT) or counts_answers):
            self._refuse("qos", f"has no effect here at {door}")
        if "password" in self._said and self._values["user"] is None and door != AMQP:  # there it is guest's
            self._refuse("password", "is for --user")

    def _refuse(self, name: str, why: str) -> NoReturn:
        refuse(f"{self._labels[name]} {why}")


def _said_in(ctx: Any) -> set[str]:  # noqa: ANN401 - as above
    return {name for name in ctx.params if is_said(ctx, name)}


def is_said(ctx: Any, name: str) -> bool:  # noqa: ANN401 - as above
    """Return whether a parameter stands on the command line, and not only in the environment."""
    return getattr(ctx.get_parameter_source(name), "name", "") == SAID
