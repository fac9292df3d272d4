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
from gateway.commands.refusing import EXIT_NOT_NOW, refuse

user_cli = typer.Typer(**PLAIN, help="Make, change, disable, delete and list the users of the data folder.")
NameArgument = Annotated[str, typer.Argument(help="Name of the user.", autocompletion=complete_users)]
NewPasswordOption = Annotated[
    str | None,
    typer.Option("--new-password", help="The password, in place of a prompt; other users of this machine can see it."),
]
StdinOption = Annotated[bool, typer.Option("--password-stdin", help="The new password is the first line of stdin.")]
GenerateOption = Annotated[bool, typer.Option("--generate", help="Generate the new password, and print it.")]
TAGS = ("administrator", "monitoring", "policymaker", "management")  # as `gateway.settings.models.UserTag`
VhostOption = Annotated[
    str, typer.Option("--vhost", help="The virtual host; MQTT and RocketMQ are in /.", autocompletion=complete_vhosts)
]
GENERATED_BYTES = 18  # 144 bits, 24 characters
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
    secret: Annotated[str, typer.Option(help="The secret that the user's RocketMQ clients sign with.")] = "",
    new_password: NewPasswordOption = None,
    password_stdin: StdinOption = False,
    generate: GenerateOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a user. Until `lmq grant` it may do only what rules allow.

    The command asks for the password twice.
    """
    check_tags(tags)
    client = AdminClient(admin, user, password)
    if any(one["name"] == name for one in client.ask("/api/users")):
        refuse(f"user {name!r} exists already: see `lmq user passwd` and `lmq user tags`", code=EXIT_NOT_NOW)
    plain = _new_password(new_password, from_stdin=password_stdin, generate=generate)
    client.send("PUT", f"/api/users/{quote(name)}", {"password": plain, "tags": tags or [], "secret": secret})
    _print_set({"added": name, "tags": tags or []}, plain, is_generated=generate, as_json=as_json)
    hint = f"to allow everything: lmq grant {shlex.quote(name)} --all"
    print(f"lmq: {name!r} has no permissions yet, and may do only what rules allow; {hint}", file=sys.stderr)


def _new_password(given: str | None, *, from_stdin: bool, generate: bool) -> str:
    """Return the password of the user that is made or changed."""
    import secrets

    if [given is not None, from_stdin, generate].count(True) > 1:
        refuse("give only one of --new-password, --password-stdin and --generate")
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
            refuse(f"{tag!r} is not a tag; tags are {', '.join(TAGS[:-1])} and {TAGS[-1]}")


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
    """Set a user's password; connections that used the old one are closed."""
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
    """Set the tags of a user; without TAGS remove them all."""
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
    """Disable a user. Until `lmq user enable` its logins are refused; its MQTT sessions stay."""
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
    """Enable a disabled user, with its old password, tags, rights and tokens."""
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
    """Delete a user with its permissions and tokens, and close its connections."""
    client = AdminClient(admin, user, password)
    path = f"/api/users/{quote(name)}"
    if not yes:
        client.ask(path)
        places = [one["vhost"] for one in client.ask(f"{path}/permissions")]
        lost = f"permissions in {', '.join(places)}" if places else "no permissions"
        confirm(f"this deletes user {name!r} with {lost}, its tokens, and its open connections", yes=False)
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
    """List the users with their permissions in each virtual host."""
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
        int | None, typer.Option("--max-connections", help="Open connections at all doors together; below 0: no limit.")
    ] = None,
    channels_max: Annotated[
        int | None, typer.Option("--max-channels", help="Open AMQP channels; below 0: no limit.")
    ] = None,
    messages_rate: Annotated[
        int | None, typer.Option(help="Messages a second that the user may publish; below 0: no limit.")
    ] = None,
    bytes_rate: Annotated[int | None, typer.Option(help="The same for bytes of bodies.")] = None,
    messages_out_rate: Annotated[
        int | None, typer.Option(help="Messages a second that the user is sent; below 0: no limit.")
    ] = None,
    bytes_out_rate: Annotated[int | None, typer.Option(help="The same for bytes of bodies.")] = None,
    connects_rate: Annotated[int | None, typer.Option(help="Logins a second; below 0: no limit.")] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set limits of a user, and show them."""
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
    configure: Annotated[
        str, typer.Option(help="Names that the user may make and remove: a regular expression.")
    ] = NOTHING,
    write: Annotated[str, typer.Option(help="Names that it may write to.")] = NOTHING,
    read: Annotated[str, typer.Option(help="Names that it may read.")] = NOTHING,
    everything: Annotated[bool, typer.Option("--all", help="The same as --configure .* --write .* --read .*")] = False,
    vhost: VhostOption = "/",
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set what a user may do in a virtual host, replacing what was set before. MQTT topics belong to amq.topic."""
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
