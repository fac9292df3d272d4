"""What stands in the path of a request: virtual hosts, and queues and exchanges in them."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.admin.management.failures import not_found
from gateway.admin.view import AdminView
from gateway.amqp.exchanges import Exchange
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue

DEFAULT_EXCHANGE = "amq.default"  # what the exchange without a name is called in paths


def find_vhosts(view: AdminView, name: str | None) -> Iterable[VirtualHost]:
    """Return the virtual host of that name, or all of them.

    Raises:
        HTTPException: 404.
    """
    return view.vhosts if name is None else [get_vhost(view, name)]


def get_vhost(view: AdminView, name: str) -> VirtualHost:
    """Return a virtual host.

    Raises:
        HTTPException: 404.
    """
    found = view.vhosts.find(name)
    if found is None:
        raise not_found(f"no vhost '{name}'")
    return found


def get_queue(vhost: VirtualHost, name: str) -> SharedQueue:
    """Return a queue.

    Raises:
        HTTPException: 404.
    """
    found = vhost.find(name)
    if found is None:
        raise not_found(f"no queue '{name}' in vhost '{vhost.name}'")
    return found


def get_exchange(vhost: VirtualHost, name: str) -> Exchange:
    """Return an exchange.

    Raises:
        HTTPException: 404.
    """
    found = vhost.exchanges.find(real_name(name))
    if found is None:
        raise not_found(f"no exchange '{name}' in vhost '{vhost.name}'")
    return found


def real_name(exchange: str) -> str:
    """Return what an exchange is called that a path names."""
    return "" if exchange == DEFAULT_EXCHANGE else exchange
