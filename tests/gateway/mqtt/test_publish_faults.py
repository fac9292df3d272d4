from __future__ import annotations

import pytest

from gateway.mqtt.errors import MqttError
from gateway.mqtt.publish_faults import FAULTS, raise_fault


@pytest.mark.parametrize("fault", range(1, len(FAULTS)))
def test_each_fault_names_a_clause_and_a_reason(fault):
    with pytest.raises(MqttError) as caught:
        raise_fault(fault)
    assert caught.value.clause.startswith("MQTT-")
    assert caught.value.reason
    assert caught.value.code >= 0x81
