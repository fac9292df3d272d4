"""What a client of the lives of sessions is sent, held against the model of `session_oracle`."""

from __future__ import annotations

from gateway.mqtt.properties import Property
from tests.support import mqtt
from tests.support.exact_clients import packet_id_of
from tests.support.mqtt_5 import Got
from tests.support.session_oracle import DONE, RECEIVED, SENT, WAITING, matches

SAID = (Property.CONTENT_TYPE, Property.RESPONSE_TOPIC, Property.CORRELATION, Property.PAYLOAD_FORMAT, Property.USER)


class Sighting:
    """The side of a client that reads; `Client` is the other."""

    def observe(self):
        """Hold all that came since the last time against the model."""
        if self.peer is None:
            return
        for packet in self.peer.take():
            kind = packet[0] >> 4
            if kind == 3:
                self.on_publish(packet)
            elif kind == 6:
                self.on_release(packet_id_of(packet))
            else:
                self.answers.append(packet)
        self._note_too_large()

    def _note_too_large(self):
        """Let what the client does not take be left out; it is not known how far the gateway is with that."""
        if self.packet_bytes_max and self.session is not None:
            copies = [copy for one in self.session.subscriptions.values() for copy in one.all_copies()]
            for copy in [one for one in copies if one.state == WAITING] + self.again:
                copy.may_come |= copy.message.is_large

    def on_release(self, number):
        for copy in self.again:
            if copy.packet_id == number and copy.qos == 2:
                assert copy.state == RECEIVED or self._may_miss(copy), ("released, not sent", copy.message.body)
                copy.state = RECEIVED
                self.again.remove(copy)
                self.in_flight[number] = copy
                break
        if number in self.in_flight:
            assert self.in_flight[number].state == RECEIVED
            self.releases.append(number)

    def on_publish(self, packet):
        found = self._parse(packet)
        candidates = self._candidates(found)
        copy = self._find_again(found, candidates) if found.dup else self._find_new(found, candidates)
        self._check(found, copy)
        if not found.dup:
            self.sent_count += 1
            copy.sent_number = self.sent_count
        copy.qos, copy.packet_id, copy.was_sent, copy.is_adrift = found.qos, found.packet_id, True, False
        if found.qos:
            assert found.packet_id not in self.in_flight
            copy.state, copy.holder = SENT, copy.owner
            self.in_flight[found.packet_id] = copy
            self.ring += [] if copy in self.ring else [copy]
            assert len(self.in_flight) <= self.window, ("too many in flight", len(self.in_flight), self.window)
        else:
            self.again = [one for one in self.again if one is not copy]
            copy.state, copy.holder = DONE, copy.owner
            copy.may_come = False

    def _parse(self, packet):
        if self.is_5:
            found = Got(packet)
            assert not self.packet_bytes_max or len(packet) <= self.packet_bytes_max, "too large a packet"
            alias = found.properties.numbers.get(Property.TOPIC_ALIAS)
            if alias is not None:
                assert 1 <= alias <= self.alias_max
                if found.topic:
                    self.aliases[alias] = found.topic
                found.topic = self.aliases[alias]
            return found
        return mqtt.parse_publish(packet)

    def _candidates(self, found):
        """Return the subscriptions that a message may have come for."""
        session = self.session
        if self.is_5:
            number = found.properties.numbers.get(Property.SUBSCRIPTION_ID, 0)
            if number:
                one = session.by_identifier[number]
                return [one, *[other for other in session.ended if other.topic_filter == one.topic_filter]]
            if self.life.is_5_only:  # a retained message that is under way for a subscription that was ended
                assert found.retain, "no subscription identifier"
                assert found.dup, "no subscription identifier"
                return session.ended
        everything = [*session.subscriptions.values(), *session.ended]
        return [one for one in everything if matches(one.plain, found.topic)]

    def _find_again(self, found, candidates):
        for copy in sorted(self.again, key=lambda copy: not self._has_identifier(copy, found.packet_id)):
            if self._is_same(found, copy) and copy.holder in candidates and copy.state == SENT:
                before = [one for one in self.again[: self.again.index(copy)] if self._is_earlier(one, copy)]
                late = [one for one in before if not self._may_miss(one)]
                assert not late, ("out of order", found.body, [one.message.body for one in late])
                assert copy.is_adrift or copy.packet_id == found.packet_id
                for one in before:
                    self._give_up(one)
                self.again.remove(copy)
                copy.owner = copy.holder
                return copy
        for one in candidates:
            for copy in one.all_copies():
                is_passed = copy.state == DONE or (copy.state == WAITING and copy.message.is_large)  # if it was read
                if self._is_same(found, copy) and is_passed and copy.may_come:
                    copy.owner, copy.state = one, DONE
                    return copy
        raise AssertionError(f"again without a reason: {found.topic} {found.body}")

    @staticmethod
    def _has_identifier(copy, packet_id):
        """Return whether a copy comes again with a packet identifier, if it does; after a kill one at QoS 1 has any."""
        return copy.packet_id == packet_id and not (copy.is_adrift and copy.qos == 1)

    def _is_same(self, found, copy):
        if copy.is_catch_up:
            is_retained = True
        elif copy.holder is None:
            is_retained = found.retain and copy.message.is_retained
        else:
            is_retained = copy.holder.keeps_retain and copy.message.is_retained
        if bool(found.retain) != is_retained:
            return False
        return (found.topic, found.body) == (copy.message.topic, copy.message.body) and (
            not self.is_5 or self._said(found) == sorted(copy.message.said)
        )

    @staticmethod
    def _said(found):
        return sorted(item for item in found.properties.items() if item[0] in SAID)

    @staticmethod
    def _is_earlier(one, other):
        """Return whether one comes again before the other, which follows it; after a kill by subscription."""
        if one.is_adrift or other.is_adrift:
            return (one.holder, one.is_catch_up, one.qos == 2) == (other.holder, other.is_catch_up, other.qos == 2)
        return True

    def _may_miss(self, copy):
        now_ms = self.life.world.now_ms
        if copy.holder is not None and copy.is_adrift and copy.holder.hides(copy.message):
            return True  # it was sent before the subscription changed
        return copy.may_come or copy.message.is_expired(now_ms) or self._is_too_large(copy)

    def _is_too_large(self, copy):
        return bool(self.packet_bytes_max) and copy.message.is_large

    def _give_up(self, copy):
        self.again.remove(copy)
        copy.state = DONE

    def _find_new(self, found, candidates):
        late = []
        for one in candidates:
            earlier = []
            for copy in one.all_copies():
                if self._is_answered(found, one, copy):
                    if earlier and not copy.is_catch_up and one.group is None:
                        late = late or earlier  # unless it is a retained message that a SUBSCRIBE asked for
                        continue
                    chosen = self._newest(one, copy)
                    chosen.owner = one
                    self._check_old_first(found, chosen)
                    return chosen
                if copy.state == WAITING and not (self._may_miss(copy) or one.hides(copy.message) or copy.is_catch_up):
                    earlier.append(copy)
        assert not late, ("order", found.body, [each.message.body for each in late])
        known = [copy for one in candidates for copy in one.all_copies() if copy.message.body == found.body]
        raise AssertionError(f"not asked for: {found.topic} {found.body} {found.retain} {known}")

    def _is_answered(self, found, subscription, copy):
        """Return whether a packet that is not marked as sent again may be this copy."""
        message = copy.message
        is_read_again = copy.is_adrift or (copy.state == DONE and copy.may_repeat)  # as it is in its place in the queue
        is_due = copy.state == WAITING or (is_read_again and not subscription.qos)
        if not is_due or subscription.is_ended or not self._is_same(found, copy):
            return False
        if message.is_expired(self.life.world.now_ms):
            return False
        if copy.is_catch_up:
            return found.retain and found.qos in {copy.qos, min(message.qos, subscription.qos)}
        return not subscription.hides(message) and found.retain == (subscription.keeps_retain and message.is_retained)

    @staticmethod
    def _newest(subscription, copy):
        """Return the copy that the newest SUBSCRIBE asked for, of one that several did."""
        if copy.is_catch_up:
            copies = [one for one in subscription.copies if one.message is copy.message and one.is_catch_up]
            return next(one for one in reversed(copies) if one.state == WAITING)
        return copy

    def _check_old_first(self, found, new):
        """Check that all that was sent before has come again; after a kill each subscription goes on by itself."""
        if found.qos:
            late = [one for one in self.again if one.state == SENT and not self._may_miss(one)]
            like = (new.owner, new.is_catch_up)
            late = [one for one in late if not one.is_adrift or (one.holder, one.is_catch_up) == like]
            assert not late, ("new before old", found.body, [one.message.body for one in late])

    def _check(self, found, copy):
        message, one = copy.message, copy.owner
        now_ms = self.life.world.now_ms
        assert found.topic == message.topic
        if found.dup and not (copy.is_adrift or copy.state == DONE):
            assert found.qos == copy.qos
        elif found.dup or copy.is_catch_up:
            assert found.qos in {copy.qos, min(message.qos, one.qos)}
        else:
            assert found.qos == min(message.qos, one.qos), (found.qos, message.qos, one.qos)
            assert not message.is_expired(now_ms), "expired"
        if copy.is_catch_up:
            assert found.retain
        else:
            assert bool(found.retain) == (one.keeps_retain and message.is_retained)
        assert not self._is_too_large(copy)
        if self.is_5:
            left = found.properties.numbers.get(Property.MESSAGE_EXPIRY)
            if message.expiry_s is None:
                assert left is None
            elif not message.is_expired(now_ms):
                assert left == message.expiry_s - (now_ms - message.stored_ms) // 1_000

    # What must have come

    def check_idle(self):
        """Check that nothing waits that could have been sent."""
        if self.peer is None:
            return
        assert not self.peer.is_closed, "closed by the gateway"
        self.observe()
        if len(self.in_flight) < self.window:
            owed = [one for one in self.again if not self._may_miss(one)]
            assert not owed, ("not sent again", [(one.message.body, one.state) for one in owed])
            for one in [*self.again]:
                self._give_up(one)
        for one in self.session.subscriptions.values():
            if one.group is None and (len(self.in_flight) < self.window or not (one.qos or self.again)):
                self._check_sent(one)

    def _check_sent(self, subscription):
        for copy in subscription.copies:
            if copy.state == WAITING and not (copy.is_catch_up and len(self.in_flight) >= self.window):
                assert self._may_miss(copy) or subscription.hides(copy.message), (
                    "not sent",
                    self.client_id,
                    subscription.topic_filter,
                    copy.message.body,
                    len(self.in_flight),
                    self.window,
                )
                copy.state = DONE
