"""Commands for the users of the data folder, and what they may do."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Any

import typer

from gateway.commands.asking import YesOption, ask_password, confirm, read_password
from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_users, complete_vhosts
from gateway.commands.lists import WatchOption
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_done, print_json, print_listed, print_table, show_answer
from gateway.commands.refusing import refuse

user_cli = typer.Typer(**PLAIN, help="Make, change, disable, delete and list the users of the data folder.")
NameArgument = Annotated[str, typer.Argument(help="A user.", autocompletion=complete_users)]
NewPasswordOption = Annotated[
    str | None, typer.Option("--new-password", help="Ask for none; other users of the machine can see it.")
]
StdinOption = Annotated[bool, typer.Option("--password-stdin", help="The new password is the first line of stdin.")]
GenerateOption = Annotated[bool, typer.Option("--generate", help="Make the new password up, and print it.")]
TAGS = ("administrator", "monitoring", "policymaker", "management")  # as `gateway.settings.UserTag`
VhostOption = Annotated[
    str, typer.Option("--vhost", help="The virtual host; MQTT and RocketMQ are in /.", autocompletion=complete_vhosts)
]
GENERATED_BYTES = 18
EVERYTHING, NOTHING = ".*", "^$"
COLUMNS = (
    Column("name", "name"),
    Column("tags", "tags"),
    Column("kept in", "kept_in"),
    Column("comes in", "comes_in"),
    Column("vhost", "vhost"),
    Column("configure", "configure"),
    Column("write", "write"),
    Column("read", "read"),
)
SPARE = ("kept in", "comes in")


@user_cli.command("add")
def add(
    name: NameArgument,
    *,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="administrator, monitoring, policymaker or management.")
    ] = None,
    secret: Annotated[str, typer.Option(help="What the user's RocketMQ clients sign with.")] = "",
    new_password: NewPasswordOption = None,
    password_stdin: StdinOption = False,
    generate: GenerateOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a user. It has no permissions until `lmq grant`: only rules allow it something.

    The password is asked for twice.
    """
    check_tags(tags)
    _check_asker(user, password)
    client = AdminClient(admin, user, password)
    if any(one["name"] == name for one in client.ask("/api/users")):
        refuse(f"user {name!r} is there already: see `lmq user passwd` and `lmq user tags`")
    plain = _new_password(new_password, from_stdin=password_stdin, generate=generate)
    client.send("PUT", f"/api/users/{quote(name)}", {"password": plain, "tags": tags or [], "secret": secret})
    _print_set({"added": name, "tags": tags or []}, plain, is_generated=generate, as_json=as_json)
    hint = f"for everything: lmq grant {shlex.quote(name)} --all"
    print(f"lmq: {name!r} has no permissions yet, and may do what rules allow alone; {hint}", file=sys.stderr)


def _check_asker(user: str | None, password: str | None) -> None:
    if password is not None and user is None:
        refuse("--password is that of --user; the new one is asked for, or: --password-stdin, --generate")


def _new_password(given: str | None, *, from_stdin: bool, generate: bool) -> str:
    """Return the password of the user that is made or changed."""
    import secrets

    if [given is not None, from_stdin, generate].count(True) > 1:
        refuse("--new-password, --password-stdin and --generate: one of them")
    if generate:
        return secrets.token_urlsafe(GENERATED_BYTES)
    if given is not None:
        return given
    if from_stdin:
        return read_password()
    return ask_password()


def _print_set(done: dict[str, Any], plain: str, *, is_generated: bool, as_json: bool) -> None:
    """Say what was done, with a password that was made up: it is told this once."""
    if as_json:
        print_json({**done, "password": plain} if is_generated else done)
    elif is_generated:
        print(plain)


def check_tags(tags: list[str] | None) -> None:
    """Refuse a tag that says nothing here."""
    for tag in tags or []:
        if tag not in TAGS:
            refuse(f"{tag!r} is no tag; they are {', '.join(TAGS[:-1])} and {TAGS[-1]}")


@user_cli.command("passwd")
def change_password(
    name: NameArgument,
    *,
    new_password: NewPasswordOption = None,
    password_stdin: StdinOption = False,
    generate: GenerateOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a user another password; connections that came in by the old one are closed."""
    _check_asker(user, password)
    plain = _new_password(new_password, from_stdin=password_stdin, generate=generate)
    AdminClient(admin, user, password).send("PUT", f"/api/lmq/users/{quote(name)}/password", {"password": plain})
    _print_set({"changed": name}, plain, is_generated=generate, as_json=as_json)


@user_cli.command("tags")
def set_tags(
    name: NameArgument,
    tags: Annotated[list[str] | None, typer.Argument(help="What the user may do at the admin API.")] = None,
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the tags of a user, none to take them all back."""
    check_tags(tags)
    AdminClient(admin, user, password).send("PUT", f"/api/lmq/users/{quote(name)}/tags", {"tags": tags or []})
    print_done({"changed": name, "tags": tags or []}, as_json=as_json)


@user_cli.command("disable")
def disable(
    name: NameArgument,
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let nobody in as a user until `lmq user enable`; its connections are closed, its MQTT sessions stay."""
    AdminClient(admin, user, password).send("POST", f"/api/lmq/users/{quote(name)}/disable")
    print_done({"disabled": name}, as_json=as_json)


@user_cli.command("enable")
def enable(
    name: NameArgument,
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a user in again that was disabled, with the password, tags, rights and tokens that it had."""
    AdminClient(admin, user, password).send("POST", f"/api/lmq/users/{quote(name)}/enable")
    print_done({"enabled": name}, as_json=as_json)


@user_cli.command("delete")
def delete(
    name: NameArgument,
    *,
    yes: YesOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a user with the permissions; the user's connections are closed."""
    client = AdminClient(admin, user, password)
    path = f"/api/users/{quote(name)}"
    if not yes:
        client.ask(path)
        places = [one["vhost"] for one in client.ask(f"{path}/permissions")]
        lost = f"permissions in {', '.join(places)}" if places else "no permissions"
        confirm(f"user {name!r} goes with {lost}, and with open connections and tokens", yes=False)
    client.send("DELETE", path)
    print_done({"deleted": name}, as_json=as_json)


@user_cli.command("list")
def list_users(
    *,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the users and what they may do in each virtual host."""
    client = AdminClient(admin, user, password)

    def ask() -> dict[str, Any]:
        return {"users": client.ask("/api/users"), "permissions": client.ask("/api/permissions")}

    show_answer(ask, _tell, as_json=as_json, watch=watch)


def _tell(found: dict[str, Any]) -> None:
    print_table(COLUMNS, rows_of(found["users"], found["permissions"]), SPARE)


@user_cli.command("limits")
def set_limits(
    name: NameArgument,
    *,
    connections_max: Annotated[
        int | None, typer.Option("--max-connections", help="Open at once, all doors together; below 0 for no limit.")
    ] = None,
    channels_max: Annotated[
        int | None, typer.Option("--max-channels", help="Of AMQP, open at once; below 0 for no limit.")
    ] = None,
    messages_rate: Annotated[
        int | None, typer.Option(help="Messages a second that the user may publish; below 0 for any.")
    ] = None,
    bytes_rate: Annotated[int | None, typer.Option(help="The same for bytes of bodies.")] = None,
    messages_out_rate: Annotated[
        int | None, typer.Option(help="Messages a second that the user is sent; below 0 for any.")
    ] = None,
    bytes_out_rate: Annotated[int | None, typer.Option(help="The same for bytes of bodies.")] = None,
    connects_rate: Annotated[int | None, typer.Option(help="Logins a second; below 0 for any.")] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set limits of a user, and show those that it has."""
    client = AdminClient(admin, user, password)
    path = f"/api/user-limits/{quote(name)}"
    limits = {
        "max-connections": connections_max,
        "max-channels": channels_max,
        "messages-rate": messages_rate,
        "bytes-rate": bytes_rate,
        "messages-out-rate": messages_out_rate,
        "bytes-out-rate": bytes_out_rate,
        "connects-rate": connects_rate,
    }
    for limit, value in limits.items():
        if value is not None:
            client.send("PUT", f"{path}/{limit}", {"value": value})
    found = client.ask(path)
    lines = [f"{limit}: {value}" for one in found for limit, value in one["value"].items()]
    print_listed(found, lines or ["no limits of its own"], as_json=as_json)


def rows_of(users: list[dict[str, Any]], permissions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each virtual host in which a user may do something, and one for a user with no such place."""
    rows: list[dict[str, Any]] = []
    for one in users:
        ours = one["lmq"]
        said = {
            "name": one["name"],
            "tags": ", ".join(one["tags"]),
            "kept_in": "the settings" if ours["of_settings"] else "the data folder",
            "comes_in": "disabled" if ours["is_disabled"] else "yes",
        }
        places = [place for place in permissions if place["user"] == one["name"]]
        rows += [{**said, **place} for place in places] or [said]
    return rows


def grant(
    name: NameArgument,
    *,
    configure: Annotated[str, typer.Option(help="Names that may be made and removed: an expression.")] = NOTHING,
    write: Annotated[str, typer.Option(help="Names that may be written to.")] = NOTHING,
    read: Annotated[str, typer.Option(help="Names that may be read.")] = NOTHING,
    everything: Annotated[bool, typer.Option("--all", help="All names, for all of that.")] = False,
    vhost: VhostOption = "/",
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set what a user may do in a virtual host, in place of what was set before; amq.topic are MQTT's topics."""
    rights = (EVERYTHING,) * 3 if everything else (configure, write, read)
    said = dict(zip(("configure", "write", "read"), rights, strict=True))
    AdminClient(admin, user, password).send("PUT", f"/api/permissions/{quote(vhost)}/{quote(name)}", said)
    print_done({"granted": name, "vhost": vhost, **said}, as_json=as_json)


def revoke(
    name: NameArgument,
    *,
    vhost: VhostOption = "/",
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back what a user may do in a virtual host."""
    AdminClient(admin, user, password).send("DELETE", f"/api/permissions/{quote(vhost)}/{quote(name)}")
    print_done({"revoked": name, "vhost": vhost}, as_json=as_json)
