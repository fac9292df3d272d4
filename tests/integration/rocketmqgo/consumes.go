package main

import (
	"context"
	"strconv"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// The ways to consume by oneself.
var consumes = []scenario{
	{"pull", consumePull}, {"poll", consumePoll}, {"push", consumePush}, {"tag", consumeTag}, {"sql", consumeSQL},
	{"light-queue", consumeLightQueue},
}

func consumePull(topic string, count int, counts *counts) {
	send(topic, bodies(topic, 0, count), counts)
	pull(topic, queues, counts, whatever)
}

// A pull consumer that shares out the queues and has what it read acknowledged.
func consumePoll(topic string, count int, counts *counts) {
	send(topic, bodies(topic, 0, count), counts)
	poller, err := rocketmq.NewPullConsumer(consumer.WithNsResolver(resolver()), consumer.WithGroupName(topic),
		consumer.WithInstance(instance()), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	must(err)
	must(poller.Subscribe(topic, everyTag))
	must(poller.Start())
	defer poller.Shutdown()
	poll := func() bool {
		request, err := poller.Poll(context.Background(), settle)
		if err == nil {
			counts.cameAll(request.GetMsgList())
			poller.ACK(context.Background(), request, consumer.ConsumeSuccess)
		}
		return counts.complete()
	}
	until(poll)
	poll()
}

// Half of the messages are there before the consumer is.
func consumePush(topic string, count int, counts *counts) {
	send(topic, bodies(topic, 0, count/2), counts)
	pushed := push(topic, everyTag, counting(counts))
	defer pushed.Shutdown()
	send(topic, bodies(topic, count/2, count), counts)
	counts.wait()
}

func consumeTag(topic string, count int, counts *counts) {
	filtered(topic, count, counts, consumer.MessageSelector{Type: consumer.TAG, Expression: "a || c"})
}

func consumeSQL(topic string, count int, counts *counts) {
	filtered(topic, count, counts, consumer.MessageSelector{
		Type: consumer.SQL92, Expression: "TAGS IN ('a', 'c') AND n BETWEEN 0 AND 1000000 AND x IS NULL"})
}

// filtered sends with the tags a, b and c in turn; those with b are not wanted.
func filtered(topic string, count int, counts *counts, selector consumer.MessageSelector) {
	for n, body := range bodies(topic, 0, count) {
		tag := "abc"[n%3 : n%3+1]
		message := primitive.NewMessage(topic, []byte(body)).WithTag(tag)
		message.WithProperty("n", strconv.Itoa(n))
		_, err := sender.SendSync(context.Background(), message)
		must(err)
		if tag != "b" {
			counts.sent(body)
		}
		if n == count/2 {
			pushed := push(topic, selector, counting(counts))
			defer pushed.Shutdown()
		}
	}
	counts.wait()
}

// Messages of a topic that name two light queues besides; one of these is pulled by its name.
func consumeLightQueue(topic string, count int, counts *counts) {
	for _, body := range bodies(topic, 0, count) {
		message := primitive.NewMessage(topic, []byte(body))
		message.WithProperty("INNER_MULTI_DISPATCH", "%LMQ%go-audit,%LMQ%go-copy")
		_, err := sender.SendSync(context.Background(), message)
		must(err)
		counts.sent(body)
	}
	pull("%LMQ%go-audit", 1, counts, whatever)
}
