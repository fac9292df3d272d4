"""What the gateway tells its operators of, as messages that clients of MQTT and AMQP can ask for."""
