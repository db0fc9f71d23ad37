//go:build amd64 || arm64

package drops

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of include/uapi/linux/ethtool.h.
const setScatterGather = 0x19 // ETHTOOL_SSG

// ethtoolValue calls an ethtool command with one number.
func ethtoolValue(fd int, name string, command, value uint32) error {
	v := struct{ command, value uint32 }{command, value}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&v)}
	copy(request.name[:], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(&v)
	if errno != 0 {
		return errno
	}
	return nil
}
