// Package awake keeps processors from sleep while something is timed. One that
// sleeps is late to wake: by 0.1 ms and more where it saves power, by milliseconds
// where it is virtual and its host gives its time away meanwhile.
package awake

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Hold keeps all of this machine's processors awake until release is called, or
// this process ends in whatever way. Several may hold at once. The error says why
// they sleep as they like, mostly for lack of root (Documentation/power/pm_qos_interface.rst).
func Hold() (release func() error, err error) {
	f, err := os.OpenFile("/dev/cpu_dma_latency", os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(binary.NativeEndian.AppendUint32(nil, 0)); err != nil { // µs that waking may take
		_ = f.Close()
		return nil, fmt.Errorf("keep processors awake: %w", err)
	}
	return f.Close, nil
}
