"""Gives the link of a door, whose library may have to be installed first."""

from __future__ import annotations

from gateway.commands.doors.place import Door, Place
from gateway.commands.doors.traffic import Link
from gateway.commands.refusing import refuse

ADD_CLIENTS = "pip install 'lmq-gateway[clients]'"


def make_link(place: Place) -> Link:
    """Return the link to a place; it is open inside of its `async with`."""
    try:
        if place.door is Door.MQTT:
            from gateway.commands.doors.mqtt import MqttLink

            return MqttLink(place)
        if place.door is Door.AMQP:
            from gateway.commands.doors.amqp import AmqpLink

            return AmqpLink(place)
    except ModuleNotFoundError as error:
        refuse(
            f"{error.name}, the client for {place.door.upper()}, is not installed; add it with: {ADD_CLIENTS}", error
        )
    from gateway.commands.doors.rocketmq import RocketmqLink

    return RocketmqLink(place)
