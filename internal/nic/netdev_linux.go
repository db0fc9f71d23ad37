package nic

import (
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// genericHeader is struct genlmsghdr: command, version, and two bytes that the kernel wants to be 0. The library's own
// leaves them as they are.
type genericHeader [4]byte

func (h genericHeader) Len() int          { return len(h) }
func (h genericHeader) Serialize() []byte { return h[:] }

// Netdev asks the kernel's netdev family (include/uapi/linux/netdev.h) about an interface of the calling thread's
// namespace. attribute is the one that names the interface in the request. It returns the attributes of each answer.
func Netdev(command uint8, flags, attribute, index int) (answers []map[uint16][]byte, err error) {
	family, err := netlink.GenlFamilyGet("netdev")
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(int(family.ID), flags)
	req.AddData(genericHeader{command, 1})
	req.AddData(nl.NewRtAttr(attribute, nl.Uint32Attr(uint32(index))))
	messages, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		list, err := nl.ParseRouteAttr(m[min(nl.SizeofGenlmsg, len(m)):])
		if err != nil {
			return nil, err
		}
		answer := map[uint16][]byte{}
		for _, a := range list {
			answer[a.Attr.Type] = a.Value
		}
		answers = append(answers, answer)
	}
	return answers, nil
}
