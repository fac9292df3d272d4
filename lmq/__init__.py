"""For programs that use LMQ Gateway: the asyncio SDK of its RocketMQ door, and a broker for tests (`lmq.testing`).

Nothing in here imports the server's packages (`core`, `gateway`), so it works in a project
that has packages of those names.
"""
