from __future__ import annotations

from gateway.rocketmq.admin.rates import INTERVAL_MS, Rates


def test_rates_are_of_ten_seconds_a_minute_and_ten_minutes():
    rates = Rates()
    assert rates.came(7, 0) == "0.00 0.00 0.00"
    for look in range(70):
        rates.note(look * 100, 0, look * INTERVAL_MS)
    assert rates.came(7_000 + 900, 70 * INTERVAL_MS) == "100.00 25.00 11.50"
    assert rates.went(0, 70 * INTERVAL_MS) == "0.00 0.00 0.00"
