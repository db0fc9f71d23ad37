package observe

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// driver asks ethtool, because sysfs shows the namespace it was mounted in,
// not the calling thread's.
func driver(name string) (driver string, speedBits uint64) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", 0
	}
	defer unix.Close(fd)
	if info, err := unix.IoctlGetEthtoolDrvinfo(fd, name); err == nil {
		driver = unix.ByteSliceToString(info.Driver[:])
	}
	if driver == "veth" || driver == "tun" {
		return driver, 0 // whatever they carry, they say 10 Gbit/s
	}
	return driver, linkSpeed(fd, name)
}

// linkSpeed sends ETHTOOL_GSET, which current kernels still translate for
// drivers that know only the newer request (net/ethtool/ioctl.c,
// ethtool_get_settings).
func linkSpeed(fd int, name string) uint64 {
	if len(name) >= unix.IFNAMSIZ {
		return 0
	}
	var settings [44]byte // struct ethtool_cmd, include/uapi/linux/ethtool.h
	binary.NativeEndian.PutUint32(settings[:], unix.ETHTOOL_GSET)
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [24 - unsafe.Sizeof(uintptr(0))]byte
	}
	copy(request.name[:], name)
	request.data = unsafe.Pointer(&settings)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return 0
	}
	megabits := uint32(binary.NativeEndian.Uint16(settings[12:])) | uint32(binary.NativeEndian.Uint16(settings[28:]))<<16
	// SPEED_UNKNOWN is -1; some drivers give its lower half.
	if megabits == 0 || megabits == 0xffffffff || megabits == 0xffff {
		return 0
	}
	return uint64(megabits) * 1e6
}
