//go:build !linux

package observe

import "time"

func sleepFor(d time.Duration) { time.Sleep(d) }

func examineSystem(*survey) {}

func mayConfigure() bool { return false }
