"""Requests of official clients that the gateway knows and does not answer.

Source: remoting/protocol/RequestCode of Apache RocketMQ 5.5.0.
"""

from __future__ import annotations

_POP = "POP consumption"
_TRANSACTIONS = "transactions"
NOT_BUILT = {
    37: _TRANSACTIONS,
    **dict.fromkeys([*range(200_050, 200_057), 200_151], _POP),
    **dict.fromkeys([*range(3442, 3449), 3543], _POP),
}
"""What each of them is for, by code.

POP's codes are also there as a binary header cuts them, to 16 bits.
"""
