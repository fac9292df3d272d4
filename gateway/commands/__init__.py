"""The command line `lmq`: one module for each group of commands, which `main` joins.

A command is thin: it asks the gateway through `client.AdminClient`, is a client of a door (`doors`, whose options a
command gets by `doors.place.at_door`), loads one (`bench`), or does its work by a module of the product, and shows the
answer through `output`. What a command needs is imported where it is used, so that `lmq --help` answers in
the time that typer takes to load; at the top of a module stand the standard library's light modules, typer, `options`
and `refusing`. What an operator can put right is one line on stderr and an exit code of its class (`refusing.refuse`,
`refusing.plain_errors`). Names are completed by `completing`. Commands that ask the gateway take the options of
`options`: `--admin`, `--user`, `--password` and `--json`.

To add a group: a module with a `typer.Typer(**PLAIN, help=...)`, its row in `main`, its place in `panels`, and its
tests in tests/gateway/commands.
"""
