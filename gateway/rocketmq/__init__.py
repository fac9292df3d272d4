"""The RocketMQ door: the native remoting protocol."""
