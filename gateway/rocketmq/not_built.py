"""Requests of official clients that the gateway knows and does not answer.

Source: remoting/protocol/RequestCode of Apache RocketMQ 5.5.0.
"""

from __future__ import annotations

_POP = "peeking at what a POP would give, and rolling one back"
NOT_BUILT = {
    **dict.fromkeys((200_052, 200_056, 3444, 3448), _POP),
}
"""What each of them is for, by code.

POP's codes are also there as a binary header cuts them, to 16 bits.
"""
