"""What stands in the path of a request: virtual hosts, and queues and exchanges in them."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.admin.login import Caller, not_in
from gateway.admin.management.failures import not_found
from gateway.admin.paths import DEFAULT_EXCHANGE
from gateway.admin.view import AdminView
from gateway.amqp.exchanges import Exchange
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue

Scope = frozenset[str] | None  # names of virtual hosts; None: all of them


def find_scope(view: AdminView, caller: Caller, vhost: str | None) -> Scope:
    """Return the virtual hosts of a list: one, or all that a caller is told of.

    Raises:
        HTTPException: As `see_vhost`.
    """
    if vhost is not None:
        return frozenset({see_vhost(view, caller, vhost).name})
    return None if caller.sees_all else frozenset(one.name for one in view.vhosts if caller.may_see_vhost(one.name))


def find_vhosts(view: AdminView, scope: Scope) -> Iterable[VirtualHost]:
    """Return the virtual hosts of a scope that are there."""
    return view.vhosts if scope is None else [one for one in view.vhosts if one.name in scope]


def see_vhost(view: AdminView, caller: Caller, name: str) -> VirtualHost:
    """Return a virtual host to a caller that is told of it.

    Raises:
        HTTPException: 404; 401: It is not.
    """
    found = get_vhost(view, name)
    if not caller.may_see_vhost(name):
        raise not_in(f"user '{caller.user}' has no permissions in vhost '{name}'")
    return found


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
