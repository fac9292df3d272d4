package main

import (
	"context"
	"net/url"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

type client5 struct{ manager *autopaho.ConnectionManager }

func connect5(address, id string, take func(string, []byte)) session {
	config := autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{{Scheme: "mqtt", Host: address}},
		KeepAlive:                     20,
		CleanStartOnInitialConnection: false,
		SessionExpiryInterval:         600,
		ReconnectBackoff:              func(int) time.Duration { return 50 * time.Millisecond },
		ClientConfig:                  paho.ClientConfig{ClientID: id},
	}
	if take != nil {
		config.OnPublishReceived = []func(paho.PublishReceived) (bool, error){
			func(received paho.PublishReceived) (bool, error) {
				take(received.Packet.Topic, received.Packet.Payload)
				return true, nil
			},
		}
	}
	manager, err := autopaho.NewConnection(context.Background(), config)
	if err == nil {
		err = manager.AwaitConnection(context.Background())
	}
	if err != nil {
		panic(err)
	}
	return client5{manager}
}

func (c client5) subscribe(filter string) {
	packet := &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: filter, QoS: 2}}}
	if _, err := c.manager.Subscribe(context.Background(), packet); err != nil {
		panic(err)
	}
}

// publish sends at QoS 0 at once, and else by a queue that outlives the connection.
func (c client5) publish(topic string, qos byte, body string) {
	packet := &paho.Publish{Topic: topic, QoS: qos, Payload: []byte(body)}
	var err error
	if qos == 0 {
		_, err = c.manager.Publish(context.Background(), packet)
	} else {
		err = c.manager.PublishViaQueue(context.Background(), &autopaho.QueuePublish{Publish: packet})
	}
	if err != nil {
		panic(err)
	}
}
