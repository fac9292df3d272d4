"""An asyncio client for the RocketMQ protocol."""
