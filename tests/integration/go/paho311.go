package main

import (
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

type client311 struct{ client mqtt.Client }

func connect311(address, id string, take func(string, []byte)) session {
	options := mqtt.NewClientOptions().AddBroker("tcp://" + address).SetClientID(id)
	options.SetCleanSession(false).SetResumeSubs(true).SetAutoReconnect(true).SetProtocolVersion(4)
	options.SetMaxReconnectInterval(100 * time.Millisecond).SetOrderMatters(true)
	if take != nil {
		// The library hands a message at QoS 2 on again where it is sent again, as after a lost PUBREC: it is the same
		// one if it says so and has the same packet identifier.
		last := map[uint16]string{}
		options.SetDefaultPublishHandler(func(_ mqtt.Client, message mqtt.Message) {
			body := string(message.Payload())
			if message.Qos() == 2 && message.Duplicate() && last[message.MessageID()] == body {
				return
			}
			last[message.MessageID()] = body
			take(message.Topic(), message.Payload())
		})
	}
	client := mqtt.NewClient(options)
	must(client.Connect())
	return client311{client}
}

func (c client311) subscribe(filter string) { must(c.client.Subscribe(filter, 2, nil)) }

func (c client311) publish(topic string, qos byte, body string) {
	must(c.client.Publish(topic, qos, false, body))
}

func must(token mqtt.Token) {
	token.Wait()
	if token.Error() != nil {
		panic(token.Error())
	}
}
