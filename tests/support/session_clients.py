"""Clients of MQTT 3.1.1 and 5 that hold what they are sent against the model of `session_oracle`."""

from __future__ import annotations

from gateway.mqtt.properties import Property
from tests.support import mqtt
from tests.support.exact_clients import NEVER, packet_id_of
from tests.support.mqtt_5 import connack_of, encoded
from tests.support.session_oracle import DONE, RECEIVED, SENT, SMALL_PACKETS, WAITING, Session
from tests.support.session_sightings import Sighting


class Client(Sighting):
    """One client identifier, over all its connections.

    Args:
        life: Where it lives: a world, a chance, an oracle.
        client_id: Its name.
    """

    def __init__(self, life, client_id):
        self.life, self.client_id = life, client_id
        self.peer = None
        self.is_5 = False
        self.will = None  # message and delay
        self.keep_alive_s = 0
        self.receive_max = 0
        self.packet_bytes_max = 0
        self.expiry_s = 0
        self.in_flight = {}  # copies by packet identifier
        self.again = []  # copies that are to come again on this connection, in order
        self.before = ()  # those that were under way on the connection before, in order
        self.ring = []  # copies in the order of sending, from the oldest that is not complete on
        self.releases = []  # packet identifiers to be completed
        self.aliases = {}
        self.own_aliases = {}
        self.answers = []  # packets beside messages
        self.identifier = 0
        self.packet_id = 0
        self.sent_count = 0

    @property
    def session(self):
        return self.life.oracle.sessions.get(self.client_id)

    @property
    def window(self):
        return min(self.receive_max or 65_535, self.life.inflight_max)

    # Connections

    def connect(self, *, is_5, is_clean, expiry_s, will=None, keep_alive_s=0, receive_max=0, small=False, alias_max=0):
        """Connect; `will` is a message with its delay in seconds."""
        life, oracle, now_ms = self.life, self.life.oracle, self.life.world.now_ms
        if self.peer is not None:
            self.lose(is_taken_over=True)
        session = self.session
        is_present = session is not None and not is_clean and not session.is_over(now_ms, NEVER)
        if session is not None and not is_present:
            oracle.end_session(session)
        if is_present:
            life.cancel_will(self)
        else:
            life.hasten_will(self)
        peer = self._dial(is_5, is_clean, expiry_s, will, keep_alive_s, receive_max, small, alias_max)
        self.is_5, self.will, self.keep_alive_s, self.expiry_s = is_5, will, keep_alive_s, expiry_s
        self.receive_max, self.packet_bytes_max = receive_max, SMALL_PACKETS if small else 0
        self.aliases, self.own_aliases, self.alias_max = {}, {}, alias_max
        packets = mqtt.cut(bytes(peer.transport.sent))
        first = packets[0]
        peer.transport.sent[: len(first)] = b""
        present, code = (first[2], first[3]) if not is_5 else connack_of(first)[:2]
        assert (bool(present), code) == (is_present, 0), (present, code, is_present)
        self.peer = peer
        if not is_present:
            session = oracle.sessions[self.client_id] = Session(self.client_id, is_durable=expiry_s > 0)
        session.expiry_s, session.idle_since_ms = expiry_s, None
        oracle.online.add(self.client_id)
        self._begin(session)

    def _begin(self, session):
        sent = session.in_flight()
        known = [one for one in self.before if one in sent and not one.is_adrift]
        rest = [one for one in sent if one not in known]
        self.again = known + sorted(rest, key=self._place_again)
        self.in_flight, self.before, self.releases = {}, (), []

    def _place_again(self, copy):
        """Return what a copy comes again by, among those like it: retained messages at QoS 1 as they were stored."""
        if copy.qos == 2:
            return copy.sent_number
        return self.life.oracle.published.index(copy.message) if copy.is_catch_up else 0

    def _dial(self, is_5, is_clean, expiry_s, will, keep_alive_s, receive_max, small, alias_max):
        said = {}
        if is_5:
            items = [(Property.SESSION_EXPIRY, expiry_s)]
            items += [(Property.RECEIVE_MAX, receive_max)] if receive_max else []
            items += [(Property.PACKET_BYTES_MAX, SMALL_PACKETS)] if small else []
            items += [(Property.TOPIC_ALIAS_MAX, alias_max)] if alias_max else []
            said["properties"] = encoded(*items)
        if will is not None:
            message, delay_s = will
            said["will"] = (message.topic, message.body, message.qos, message.is_retained)
            if is_5:
                items = [*message.said, *([(Property.WILL_DELAY, delay_s)] if delay_s else [])]
                items += [] if message.expiry_s is None else [(Property.MESSAGE_EXPIRY, message.expiry_s)]
                said["will"] += (encoded(*items),)
        make = mqtt.connect_5 if is_5 else mqtt.connect
        return self.life.world.dial().send(make(self.client_id, clean=is_clean, keep_alive_s=keep_alive_s, **said))

    def lose(self, *, is_taken_over=False, has_will=True, expiry_s=None):
        """Note that the connection is gone, in a process that goes on."""
        self.observe()
        session, oracle = self.session, self.life.oracle
        oracle.online.discard(self.client_id)
        flying = list(self.in_flight.values())
        self.before = (*flying, *[one for one in self.again if one not in flying])
        if expiry_s is not None:
            session.expiry_s = expiry_s
        live_s = session.expiry_s
        if session.is_durable and session.expiry_s:
            oracle.pause(session, self.life.world.now_ms)
        else:
            oracle.end_session(session)
            self.before = ()
        if has_will and self.will is not None:
            self.life.leave_will(self, live_s)
        self.will = self.peer = None
        self.in_flight, self.again = {}, []
        self.ring = [one for one in self.ring if one.state != WAITING]  # a group has the others again
        self._settle()

    def die(self):
        """Note that the gateway was killed: acknowledgements that overtook older messages may be forgotten."""
        self.peer = None
        for copy in self.ring:
            copy.may_come |= copy.state == DONE and copy.qos == 1
        self.in_flight, self.again, self.before, self.ring = {}, [], (), []

    # What it sends

    def next_id(self):
        self.packet_id = self.packet_id % 60_000 + 1
        return self.packet_id

    def subscribe(self, topic_filter, qos, *, no_local=False, keeps_retain=False, handling=0):
        """Subscribe, or change a subscription."""
        options = qos
        self.identifier += 1
        identifier = self.identifier if self.is_5 else 0
        if self.is_5:
            no_local = no_local and not topic_filter.startswith(b"$share")
            options |= 4 * no_local | 8 * keeps_retain | handling << 4
            packet = mqtt.subscribe_5(
                self.next_id(),
                (topic_filter, options),
                properties=encoded((Property.SUBSCRIPTION_ID, identifier)),
            )
        else:
            no_local, keeps_retain, handling = False, False, 0
            packet = mqtt.subscribe(self.next_id(), (topic_filter, qos))
        self.life.oracle.subscribe(
            self.session, topic_filter, qos, (no_local, keeps_retain), identifier, handling, self.life.world.now_ms
        )
        self.peer.send(packet)
        self.observe()
        assert self.take_answer(0x90)[-1] == qos

    def unsubscribe(self, topic_filter, *, is_answered=True):
        make = mqtt.unsubscribe_5 if self.is_5 else mqtt.unsubscribe
        self.life.oracle.unsubscribe(self.session, topic_filter)
        self.again = [one for one in self.again if one.state != DONE]
        self.peer.send(make(self.next_id(), topic_filter))
        self.observe()
        if is_answered:
            self.take_answer(0xB0)

    def publish(self, message):
        """Publish, and complete the handshake."""
        number = self.next_id()
        topic, said = message.topic, []
        if self.is_5:
            said = list(message.said)
            said += [] if message.expiry_s is None else [(Property.MESSAGE_EXPIRY, message.expiry_s)]
            if self.life.chance.random() < 0.4:
                alias = self.own_aliases.get(topic)
                if alias:
                    topic = b""
                else:
                    alias = self.life.chance.randint(1, 5)
                    self.own_aliases = {k: v for k, v in self.own_aliases.items() if v != alias} | {topic: alias}
                said.append((Property.TOPIC_ALIAS, alias))
            packet = mqtt.publish_5(
                topic, message.body, encoded(*said), qos=message.qos, packet_id=number, retain=message.is_retained
            )
        else:
            packet = mqtt.publish(topic, message.body, qos=message.qos, packet_id=number, retain=message.is_retained)
        self.peer.send(packet)
        if message.qos == 2:
            self.peer.send(mqtt.pubrel(number))
        self.life.observe()
        if message.is_certain and message.qos:
            answer = self.take_answer(0x40 if message.qos == 1 else 0x50)
            assert packet_id_of(answer) == number
            assert len(answer) == 4 or answer[4] in {0, 0x10}, answer
            if message.qos == 2:
                self.take_answer(0x70)

    def take_answer(self, first):
        for one in self.answers:
            if one[0] == first:
                self.answers.remove(one)
                return one
        raise AssertionError(f"no answer {first:#x}: {self.answers}")

    def acknowledge(self, count, *, is_in_order):
        """Acknowledge some of what is in flight."""
        waiting = [(number, copy) for number, copy in self.in_flight.items() if copy.state == SENT]
        if not is_in_order:
            self.life.chance.shuffle(waiting)
        packets = []
        for number, copy in waiting[:count]:
            if copy.qos == 1:
                copy.state = DONE
                copy.may_come = copy.owner.group is not None and copy in self.ring  # it may have overtaken others
                del self.in_flight[number]
                packets.append(mqtt.puback(number))
            else:
                copy.state = RECEIVED
                packets.append(mqtt.pubrec(number))
        self._settle()
        if packets:
            self.peer.send(*packets)
        self.observe()
        self.complete()

    def _settle(self):
        while self.ring and self.ring[0].state == DONE:
            self.ring.pop(0).may_come = False

    def complete(self):
        while self.releases:
            releases, self.releases = self.releases, []
            for number in releases:
                copy = self.in_flight.pop(number, None)
                if copy is not None:
                    copy.state = DONE
            self._settle()
            self.peer.send(*[mqtt.pubcomp(one) for one in releases])
            self.observe()
