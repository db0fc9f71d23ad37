package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
)

// client is a connection to the process that holds a lab. What it watches or
// borrows ends with it.
type client struct {
	name string

	mu   sync.Mutex // one request at a time
	conn *net.UnixConn
}

func (c *client) close() error { return c.conn.Close() }

// into asks the holder for what comes as a file, and decodes it.
func (c *client) into(req request, to any) (verdicts []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, verdicts, err := c.ask(req)
	if err == nil && to != nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil && !errors.As(err, new(*UsageError)) {
		err = fmt.Errorf("ask the holder of lab %s: %w", c.name, err)
	}
	return verdicts, err
}

func (c *client) links() (list []LinkWay, err error) {
	_, err = c.into(request{Do: links}, &list)
	return list, err
}

func (c *client) set(changes request) (list []LinkChanged, err error) {
	changes.Do = set
	_, err = c.into(changes, &list)
	return list, err
}

func (c *client) watch(trial uint16) error {
	_, err := c.into(request{Do: watch, Trial: trial}, nil)
	return err
}

func (c *client) collect() (list []LinkAccount, err error) {
	verdicts, err := c.into(request{Do: collect}, &list)
	if err != nil {
		return nil, err
	}
	return list, takeVerdicts(verdicts, list)
}
