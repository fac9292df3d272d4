package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const (
	limit  = 45 * time.Second
	settle = 500 * time.Millisecond // in which what comes twice shows
)

// counts says which bodies were to come, and which came.
type counts struct {
	sync.Mutex
	wanted    map[string]bool
	seen      map[string]int
	misplaced int
}

func newCounts() *counts {
	return &counts{wanted: map[string]bool{}, seen: map[string]int{}}
}

func (c *counts) sent(bodies ...string) {
	c.Lock()
	defer c.Unlock()
	for _, body := range bodies {
		c.wanted[body] = true
	}
}

func (c *counts) came(body string) {
	c.Lock()
	defer c.Unlock()
	c.seen[body]++
}

func (c *counts) cameAll(messages []*primitive.MessageExt) {
	for _, message := range messages {
		c.came(string(message.Body))
	}
}

// misplace counts what came out of order, too early or with wrong attempts.
func (c *counts) misplace() {
	c.Lock()
	defer c.Unlock()
	c.misplaced++
}

func (c *counts) size() int {
	c.Lock()
	defer c.Unlock()
	return len(c.seen)
}

func (c *counts) complete() bool {
	c.Lock()
	defer c.Unlock()
	for body := range c.wanted {
		if c.seen[body] == 0 {
			return false
		}
	}
	return true
}

func (c *counts) wait() {
	until(c.complete)
	time.Sleep(settle)
}

func until(done func() bool) {
	for end := time.Now().Add(limit); !done() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// print writes the line of a scenario; "wrong" are those that were not to come, and those that came misplaced.
func (c *counts) print(scenario string) {
	c.Lock()
	defer c.Unlock()
	received, lost, wrong := 0, 0, c.misplaced
	for body, times := range c.seen {
		received += times
		if !c.wanted[body] {
			wrong++
		}
	}
	for body := range c.wanted {
		if c.seen[body] == 0 {
			lost++
		}
	}
	fmt.Printf("%s sent=%d received=%d duplicated=%d lost=%d wrong=%d\n",
		scenario, len(c.wanted), received, received-len(c.seen), lost, wrong)
}
