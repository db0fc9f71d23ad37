package testenv

import "golang.org/x/sys/unix"

// root tells whether this process may make namespaces and configure networks. In a container, user 0 may not.
func root() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil || unix.Geteuid() != 0 {
		return false
	}
	const want = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	return have[0].Effective&want == want
}
