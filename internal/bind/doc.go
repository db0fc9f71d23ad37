// Package bind binds sockets to a network interface or a VRF, whatever the routes say.
package bind
