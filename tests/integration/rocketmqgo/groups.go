package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const retries = 2

// Consumers that fail, keep an order, or share.
var groups = []scenario{
	{"orderly", orderly}, {"broadcasting", broadcasting}, {"retry", retry}, {"dead-letters", deadLetters},
	{"sent-back", sentBack}, {"rebalance", rebalance},
}

// Each seventh message fails once, and holds up its queue.
func orderly(topic string, count int, counts *counts) {
	sendByKey(topic, count, counts)
	var lock sync.Mutex
	order, failed := newOrder(), map[string]bool{}
	pushed := push(topic, everyTag, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		lock.Lock()
		defer lock.Unlock()
		body := string(messages[0].Body)
		n, _ := strconv.Atoi(messages[0].GetProperty("n"))
		if n%7 == 0 && !failed[body] {
			failed[body] = true
			return consumer.SuspendCurrentQueueAMoment, nil
		}
		order.check(messages[0], counts)
		counts.came(body)
		return consumer.ConsumeSuccess, nil
	}, consumer.WithConsumerOrder(true), consumer.WithConsumeMessageBatchMaxSize(1),
		consumer.WithSuspendCurrentQueueTimeMillis(50*time.Millisecond))
	defer pushed.Shutdown()
	counts.wait()
}

// Two consumers, each of which is to get all.
func broadcasting(topic string, count int, counts *counts) {
	send(topic, bodies(topic, 0, 1), newCounts())
	for which := 0; which < 2; which++ {
		pushed := push(topic, everyTag, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, message := range messages {
				counts.came(fmt.Sprint(string(message.Body), "/", which))
			}
			return consumer.ConsumeSuccess, nil
		}, consumer.WithConsumerModel(consumer.BroadCasting))
		defer pushed.Shutdown()
		for _, body := range bodies(topic, 0, count) {
			counts.sent(fmt.Sprint(body, "/", which))
		}
	}
	send(topic, bodies(topic, 1, count), newCounts())
	counts.wait()
}

// Each message fails at its first attempt, and comes again after level 3, as the broker has it.
func retry(topic string, count int, counts *counts) {
	send(topic, bodies(topic, 0, count), counts)
	pushed := push(topic, everyTag, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		if messages[0].ReconsumeTimes == 0 {
			return consumer.ConsumeRetryLater, nil
		}
		for _, message := range messages {
			if message.ReconsumeTimes != 1 {
				counts.misplace()
			}
		}
		counts.cameAll(messages)
		return consumer.ConsumeSuccess, nil
	})
	defer pushed.Shutdown()
	counts.wait()
}

// Each message fails as often as it may, and is counted among the group's dead letters.
func deadLetters(topic string, count int, counts *counts) {
	send(topic, bodies(topic, 0, count), counts)
	var attempts atomic.Int64
	pushed := push(topic, everyTag, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		attempts.Add(int64(len(messages)))
		return consumer.ConsumeRetryLater, nil
	}, consumer.WithMaxReconsumeTimes(retries))
	defer pushed.Shutdown()
	wanted := int64(count * (retries + 1))
	until(func() bool { return attempts.Load() >= wanted })
	time.Sleep(time.Second) // the last ones are sent back
	pull("%DLQ%"+topic, 1, counts, whatever)
	for more := wanted; more < attempts.Load(); more++ {
		counts.misplace()
	}
}

// Each message is given up at once; then an operator sends all letters back, and the group has each as if new.
func sentBack(topic string, count int, counts *counts) {
	send(topic, bodies(topic, 0, count), counts)
	var failures atomic.Int64
	var isWell atomic.Bool
	pushed := push(topic, everyTag, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		if !isWell.Load() {
			failures.Add(int64(len(messages)))
			return consumer.ConsumeRetryLater, nil
		}
		for _, message := range messages {
			if message.ReconsumeTimes != 0 || message.Topic != topic {
				counts.misplace()
			}
		}
		counts.cameAll(messages)
		return consumer.ConsumeSuccess, nil
	}, consumer.WithMaxReconsumeTimes(0))
	defer pushed.Shutdown()
	until(func() bool { return failures.Load() >= int64(count) })
	time.Sleep(time.Second) // the last ones are sent to the letters
	isWell.Store(true)
	sendBack(topic, count)
	counts.wait()
}

// sendBack asks the operators' door to send a group's letters back, of which there are so many.
func sendBack(group string, count int) {
	wanted := fmt.Sprintf(`{"door": "rocketmq", "source": "%%DLQ%%%s", "count": 10000}`, group)
	request, err := http.NewRequest("POST", "http://"+admin+"/api/lmq/move", strings.NewReader(wanted))
	must(err)
	request.SetBasicAuth("guest", "guest")
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	must(err)
	defer answer.Body.Close()
	var said struct{ Moved, Left int }
	must(json.NewDecoder(answer.Body).Decode(&said))
	if said.Moved != count || said.Left != 0 {
		panic(fmt.Sprint("sent back ", said))
	}
}

// Two members of a group in two processes; one is killed while messages come, and the other takes over.
func rebalance(topic string, count int, counts *counts) {
	send(topic, bodies(topic, 0, count/4), counts)
	other := exec.Command(os.Args[0], namesrv, "0", admin, topic)
	said, err := other.StdoutPipe()
	must(err)
	must(other.Start())
	others := newCounts()
	read := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			others.came(lines.Text())
			counts.came(lines.Text())
		}
		close(read)
	}()
	until(func() bool { return others.size() >= count/4 })
	pushed := push(topic, everyTag, counting(counts))
	defer pushed.Shutdown()
	for n, body := range bodies(topic, count/4, count) {
		send(topic, []string{body}, counts)
		time.Sleep(4 * time.Millisecond)
		if n == count/4 {
			must(other.Process.Kill())
		}
	}
	<-read
	_ = other.Wait()
	counts.wait()
	fmt.Println("# of rebalance: the killed one had", others.size())
}

// member prints what it gets in the group of the topic's name, until it is killed.
func member(topic string) {
	push(topic, everyTag, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, message := range messages {
			fmt.Println(string(message.Body))
		}
		return consumer.ConsumeSuccess, nil
	})
	select {}
}
