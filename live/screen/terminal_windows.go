package screen

import (
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// ready waits until something can be read, or for a while.
func ready(fd uintptr, within time.Duration) bool {
	event, err := windows.WaitForSingleObject(windows.Handle(fd), uint32(within.Milliseconds()))
	if err != nil {
		time.Sleep(within)
	}
	return err == nil && event == windows.WAIT_OBJECT_0
}

// understand lets a console take the sequences of xterm.
func understand(out *os.File) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(out.Fd()), &mode) == nil {
		_ = windows.SetConsoleMode(windows.Handle(out.Fd()), mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
}
