"""What operators ask for with RocketMQ's tools: figures of topics, groups, clients and the broker, and resets."""
