package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	queues  = 4 // of a topic that a send makes
	keys    = 3
	delayed = time.Second // of level 1
)

// The ways to send. What was sent is pulled.
var sends = []scenario{
	{"sync", sendSync}, {"async", sendAsync}, {"oneway", sendOneway}, {"batch", sendBatch}, {"large", sendLarge},
	{"ordered", sendOrdered}, {"transactional", sendTransactional}, {"delayed", sendDelayed}, {"timed", sendTimed},
}

func whatever(*primitive.MessageExt) {}

func sendSync(topic string, count int, counts *counts) {
	send(topic, bodies(topic, 0, count), counts)
	pull(topic, queues, counts, whatever)
}

func sendAsync(topic string, count int, counts *counts) {
	var answered sync.WaitGroup
	answered.Add(count)
	for _, body := range bodies(topic, 0, count) {
		must(sender.SendAsync(context.Background(), func(_ context.Context, _ *primitive.SendResult, err error) {
			if err == nil {
				counts.sent(body)
			}
			answered.Done()
		}, primitive.NewMessage(topic, []byte(body))))
	}
	answered.Wait()
	pull(topic, queues, counts, whatever)
}

func sendOneway(topic string, count int, counts *counts) {
	for _, body := range bodies(topic, 0, count) {
		must(sender.SendOneWay(context.Background(), primitive.NewMessage(topic, []byte(body))))
		counts.sent(body)
	}
	pull(topic, queues, counts, whatever)
}

func sendBatch(topic string, count int, counts *counts) {
	for from := 0; from < count; from += 20 {
		var batch []*primitive.Message
		for _, body := range bodies(topic, from, min(count, from+20)) {
			batch = append(batch, primitive.NewMessage(topic, []byte(body)))
			counts.sent(body)
		}
		_, err := sender.SendSync(context.Background(), batch...)
		must(err)
	}
	pull(topic, queues, counts, whatever)
}

// Bodies that the client compresses.
func sendLarge(topic string, count int, counts *counts) {
	var longer []string
	for _, body := range bodies(topic, 0, count/10) {
		longer = append(longer, body+strings.Repeat("-", 100_000))
	}
	send(topic, longer, counts)
	pull(topic, queues, counts, whatever)
}

func sendOrdered(topic string, count int, counts *counts) {
	sendByKey(topic, count, counts)
	order := newOrder()
	pull(topic, queues, counts, func(message *primitive.MessageExt) { order.check(message, counts) })
}

// sendByKey sends count messages, those of a key (n mod 3) to one queue.
func sendByKey(topic string, count int, counts *counts) {
	byKey := newProducer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	defer byKey.Shutdown()
	for n, body := range bodies(topic, 0, count) {
		message := primitive.NewMessage(topic, []byte(body)).WithShardingKey(fmt.Sprint("key", n%keys))
		message.WithProperty("n", strconv.Itoa(n))
		_, err := byKey.SendSync(context.Background(), message)
		must(err)
		counts.sent(body)
	}
}

// order knows the last message of each key.
type order struct {
	sync.Mutex
	last map[int]int
}

func newOrder() *order {
	return &order{last: map[int]int{}}
}

func (o *order) check(message *primitive.MessageExt, counts *counts) {
	o.Lock()
	defer o.Unlock()
	n, _ := strconv.Atoi(message.GetProperty("n"))
	if before, found := o.last[n%keys]; found && n != before+keys {
		counts.misplace()
	}
	o.last[n%keys] = n
}

// payer commits, rolls back or leaves unknown by n mod 3, and commits when the broker asks.
type payer struct{}

func (payer) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	n, _ := strconv.Atoi(message.GetProperty("n"))
	return []primitive.LocalTransactionState{
		primitive.CommitMessageState, primitive.RollbackMessageState, primitive.UnknowState,
	}[n%3]
}

func (payer) CheckLocalTransaction(*primitive.MessageExt) primitive.LocalTransactionState {
	return primitive.CommitMessageState
}

func sendTransactional(topic string, count int, counts *counts) {
	paying, err := rocketmq.NewTransactionProducer(payer{}, producer.WithNsResolver(resolver()),
		producer.WithGroupName("go-payers"), producer.WithInstanceName(instance()))
	must(err)
	must(paying.Start())
	defer paying.Shutdown()
	for n, body := range bodies(topic, 0, count) {
		message := primitive.NewMessage(topic, []byte(body))
		message.WithProperty("n", strconv.Itoa(n))
		_, err := paying.SendMessageInTransaction(context.Background(), message)
		must(err)
		if n%3 != 1 {
			counts.sent(body)
		}
	}
	pull(topic, queues, counts, whatever)
}

func sendDelayed(topic string, count int, counts *counts) {
	for _, body := range bodies(topic, 0, count) {
		message := primitive.NewMessage(topic, []byte(body)).WithDelayTimeLevel(1)
		_, err := sender.SendSync(context.Background(), message)
		must(err)
		counts.sent(body)
	}
	pull(topic, queues, counts, func(message *primitive.MessageExt) {
		if time.Now().Before(time.UnixMilli(message.BornTimestamp).Add(delayed)) {
			counts.misplace()
		}
	})
}

func sendTimed(topic string, count int, counts *counts) {
	due := time.Now().Add(3 * time.Second)
	for _, body := range bodies(topic, 0, count) {
		message := primitive.NewMessage(topic, []byte(body))
		message.WithProperty("TIMER_DELIVER_MS", strconv.FormatInt(due.UnixMilli(), 10)) // this client has no name for it
		_, err := sender.SendSync(context.Background(), message)
		must(err)
		counts.sent(body)
	}
	pull(topic, queues, counts, func(*primitive.MessageExt) {
		if time.Now().UnixMilli() < due.UnixMilli() {
			counts.misplace()
		}
	})
}
