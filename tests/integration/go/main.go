// Publishes and subscribes by paho.mqtt.golang (version 4) or paho.golang (version 5), and counts what came:
// main HOST PORT VERSION COUNT
//
// Between the lines "cut me" and "done" the connections may be cut: the client comes back by itself.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// session is one client of either library, which comes back by itself.
type session interface {
	subscribe(filter string)
	publish(topic string, qos byte, body string)
}

type counts struct {
	sync.Mutex
	seen [3]map[string]int
}

func (c *counts) take(topic string, body []byte) {
	qos, _ := strconv.Atoi(strings.Split(topic, "/")[1])
	c.Lock()
	c.seen[qos][string(body)]++
	c.Unlock()
}

func (c *counts) until(wanted int, limit time.Duration, levels ...int) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		c.Lock()
		all := true
		for _, qos := range levels {
			all = all && len(c.seen[qos]) == wanted
		}
		c.Unlock()
		if all {
			return
		}
	}
}

func main() {
	address := os.Args[1] + ":" + os.Args[2]
	connect := connect311
	if os.Args[3] == "5" {
		connect = connect5
	}
	count, _ := strconv.Atoi(os.Args[4])
	got := &counts{}
	for qos := range got.seen {
		got.seen[qos] = map[string]int{}
	}
	subscriber := connect(address, "go-subscriber", got.take)
	subscriber.subscribe("go/#")
	publisher := connect(address, "go-publisher", nil)
	send := func(qos byte, number int) {
		publisher.publish(fmt.Sprintf("go/%d/%d", qos, number%7), qos, strconv.Itoa(number))
	}
	for number := 0; number < count; number++ {
		send(0, number)
	}
	got.until(count, 10*time.Second, 0)
	fmt.Println("cut me")
	for number := 0; number < count; number++ {
		send(1, number)
		send(2, number)
	}
	got.until(count, 30*time.Second, 1, 2)
	got.Lock()
	for qos, seen := range got.seen {
		received := 0
		for _, times := range seen {
			received += times
		}
		fmt.Printf("qos=%d sent=%d received=%d duplicated=%d lost=%d\n", qos, count, received, received-len(seen), count-len(seen))
	}
	fmt.Println("done")
}
