package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/nats-io/nkeys"

	"pelt/model"
)

// HubAddress is a hub that another host serves.
type HubAddress struct {
	Addr netip.AddrPort // of its control port
	Code string         // that it wants to hear; "" for none

	key nkeys.KeyPair // of the code, if it is at hand
}

// DialTwo connects to the hubs of both ends of a path and takes no agent of this
// host in: the one at near is the sender's side, the one at far the receiver's,
// whatever they call themselves. Each trial's ends talk to their own hub only;
// the controller tells each side how far the other has come. The near host calls
// the far one, so whoever serves it must have allowed that, see
// [ServeConfig]. Errors are those of [Dial].
func DialTwo(ctx context.Context, near, far HubAddress, version string) (*Controller, error) {
	c := newController(version)
	for _, side := range []struct {
		node string
		HubAddress
	}{{model.Sender, near}, {model.Receiver, far}} {
		if err := c.meet(ctx, side.node, side.HubAddress); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// meet connects to one more hub, whose agents sit at node.
func (c *Controller) meet(ctx context.Context, node string, hub HubAddress) error {
	pair := hub.key
	if hub.Code != "" && pair == nil {
		var err error
		if pair, err = codeKey(hub.Code); err != nil {
			return err
		}
	}
	l, err := dialHub(ctx, hub.Addr, pair)
	if err != nil {
		return err
	}
	l.far = fmt.Sprintf("the %s (%v)", node, hub.Addr.Addr())
	c.links = append(c.links, l)
	return c.hello(ctx, l, nil, hub.Addr.Addr().String(), node)
}
