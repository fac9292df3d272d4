"""The addresses of the operators' door: sockets that listen before there is anything to answer with."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterable
from typing import NamedTuple

from gateway.address import format_address
from gateway.carriage import told_name
from gateway.door import ADMIN, Listen
from gateway.listeners import Listeners
from gateway.net.listener import ListenError, reason_of
from gateway.net.streams.layer import LayerFactory

BACKLOG = 128  # connections that wait for the libraries, or for the loop


class Bound(NamedTuple):
    """One address of the door, and the socket that listens there."""

    listen: Listen
    sock: socket.socket
    make_layers: LayerFactory | None  # of connections there; None: they are plain


async def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 picks one.

    Raises:
        ListenError: The address is in use, not ours or not allowed.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, proto, _, address = found[0]
        sock = socket.socket(family, kind, proto)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(BACKLOG)
        except OSError:
            sock.close()
            raise
    except OSError as error:
        raise ListenError(ADMIN, format_address(host, port), reason_of(error)) from error
    return sock


async def bind_all(listens: Iterable[Listen], listeners: Listeners) -> list[Bound]:
    """Listen on addresses, and note them; of several that cannot all be had, none is kept.

    Raises:
        ListenError: An address cannot be listened on.
        SettingsError: A certificate cannot be used.
    """
    made: list[Bound] = []
    with contextlib.ExitStack() as undo:
        for listen in listens:
            address, make_layers = listeners.carry(listen)
            sock = undo.enter_context(await bind_socket(*address))
            made.append(Bound(listen, sock, make_layers))
        undo.pop_all()
    for one in made:
        host, port = one.sock.getsockname()[:2]
        listeners.note(ADMIN, told_name(one.listen), (str(host), int(port)))
    return made
