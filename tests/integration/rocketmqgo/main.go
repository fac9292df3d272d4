// Runs scenarios of rocketmq-client-go one by one and prints what each counted: main NAMESRV COUNT ADMIN
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

var (
	namesrv  string
	admin    string // the operators' door
	sender   rocketmq.Producer
	broker   string // its name, which pulls ask for
	made     int
	everyTag = consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}
)

type scenario struct {
	name string
	run  func(topic string, count int, counts *counts)
}

func main() {
	rlog.SetLogLevel("fatal")
	namesrv = os.Args[1]
	admin = os.Args[3]
	if len(os.Args) > 4 {
		member(os.Args[4])
	}
	count, err := strconv.Atoi(os.Args[2])
	must(err)
	sender = newProducer()
	first, err := sender.SendSync(context.Background(), primitive.NewMessage("go-first", []byte("first")))
	must(err)
	broker = first.MessageQueue.BrokerName
	for _, scenarios := range [][]scenario{sends, consumes, groups} {
		for _, each := range scenarios {
			counts := newCounts()
			each.run("go-"+each.name, count, counts)
			counts.print(each.name)
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func instance() string {
	made++
	return fmt.Sprintf("go-%d-%d", os.Getpid(), made)
}

func resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{namesrv})
}

func newProducer(options ...producer.Option) rocketmq.Producer {
	options = append(options, producer.WithNsResolver(resolver()), producer.WithGroupName("go-senders"),
		producer.WithInstanceName(instance()))
	made, err := rocketmq.NewProducer(options...)
	must(err)
	must(made.Start())
	return made
}

type take = func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)

// push starts a push consumer in the group of the topic's name.
func push(topic string, selector consumer.MessageSelector, take take, options ...consumer.Option) rocketmq.PushConsumer {
	options = append(options, consumer.WithNsResolver(resolver()), consumer.WithGroupName(topic),
		consumer.WithInstance(instance()), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	made, err := rocketmq.NewPushConsumer(options...)
	must(err)
	must(made.Subscribe(topic, selector, take))
	must(made.Start())
	return made
}

// counting takes all that comes.
func counting(counts *counts) take {
	return func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		counts.cameAll(messages)
		return consumer.ConsumeSuccess, nil
	}
}

func bodies(topic string, from, to int) []string {
	var made []string
	for n := from; n < to; n++ {
		made = append(made, fmt.Sprintf("%s %d", topic, n))
	}
	return made
}

// send sends these bodies, each waited for, and counts them as sent.
func send(topic string, bodies []string, counts *counts) {
	for _, body := range bodies {
		_, err := sender.SendSync(context.Background(), primitive.NewMessage(topic, []byte(body)))
		must(err)
		counts.sent(body)
	}
}

// pull reads the queues of a topic from their beginnings, until all that was sent is there and for a while on. The pull
// of an empty queue is held by the broker, and cannot be given up, so each queue has a reader, which ends later.
func pull(topic string, queues int, counts *counts, look func(*primitive.MessageExt)) {
	puller, err := rocketmq.NewPullConsumer(consumer.WithNsResolver(resolver()),
		consumer.WithGroupName("go-pullers"), consumer.WithInstance(instance()))
	must(err)
	must(puller.Subscribe(topic, everyTag))
	must(puller.Start())
	defer puller.Shutdown()
	var done atomic.Bool
	for queue := 0; queue < queues; queue++ {
		go func() {
			for place := int64(0); ; {
				from := &primitive.MessageQueue{Topic: topic, BrokerName: broker, QueueId: queue}
				result, err := puller.PullFrom(context.Background(), from, place, 32)
				if done.Load() {
					return
				}
				must(err)
				place = result.NextBeginOffset
				for _, message := range result.GetMessageExts() {
					look(message)
					counts.came(string(message.Body))
				}
			}
		}()
	}
	counts.wait()
	done.Store(true)
}
