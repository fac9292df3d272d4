"""RocketMQ's remoting protocol in bytes: frames, commands, codes, records; for clients, and for the gateway's door."""
