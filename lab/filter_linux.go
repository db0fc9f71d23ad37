package lab

import (
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const (
	filterName = "setup"
	logGroup   = 7 // of nfnetlink_log, in the router's namespace
	// A batch of rules must fit into a netlink socket's buffers, both ways.
	rulesAtOnce = 100
)

// filterFamily is that of nftables that sees what the lab's router or switch forwards.
func (l *Lab) filterFamily() nftables.TableFamily {
	if l.spec.nodes[l.spec.middle()].role == bridge {
		return nftables.TableFamilyBridge
	}
	return nftables.TableFamilyINet
}

// addFilter makes the rules and the log of a setup, in the calling thread's namespace.
// The rules stand before a router's own ones, the log behind them, where a packet
// is that will be forwarded. Each rule asks for an interface that is not there, as
// a firewall by zones does:
//
//	table inet setup {
//	  chain rules { type filter hook forward priority filter - 10; iifname "none-1" drop; ... }
//	  chain log { type filter hook forward priority filter + 10; counter log group 7 snaplen 96 queue-threshold 1 }
//	}
func addFilter(family nftables.TableFamily, c routerSetup) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Family: family, Name: filterName})
	chain := func(name string, priority nftables.ChainPriority) *nftables.Chain {
		return conn.AddChain(&nftables.Chain{Table: table, Name: name, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookForward, Priority: &priority})
	}
	flush := func() error {
		if err := conn.Flush(); err != nil {
			return missing("nftables filter", "CONFIG_NF_TABLES_INET, CONFIG_NF_TABLES_BRIDGE, CONFIG_NFT_LOG",
				fmt.Errorf("add rules: %w", err))
		}
		return nil
	}
	if c.log {
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain("log", *nftables.ChainPriorityFilter+10),
			Exprs: []expr.Any{
				&expr.Counter{},
				&expr.Log{Key: 1<<unix.NFTA_LOG_GROUP | 1<<unix.NFTA_LOG_SNAPLEN | 1<<unix.NFTA_LOG_QTHRESHOLD,
					Group: logGroup, Snaplen: logBytes, QThreshold: 1},
			}})
	}
	if c.rules == 0 {
		return flush()
	}
	rules := chain("rules", *nftables.ChainPriorityFilter-10)
	for i := range c.rules {
		drop := &expr.Verdict{Kind: expr.VerdictDrop}
		conn.AddRule(&nftables.Rule{Table: table, Chain: rules,
			Exprs: byInterface(expr.MetaKeyIIFNAME, expr.CmpOpEq, fmt.Sprintf("none-%d", i+1), drop)})
		if i%rulesAtOnce == rulesAtOnce-1 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// logBytes of a packet go to the log: its headers.
const logBytes = 96

// takeFilter removes what addFilter made, or a part of it.
func takeFilter(family nftables.TableFamily) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	conn.DelTable(&nftables.Table{Family: family, Name: filterName})
	if err := conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove rules: %w", err)
	}
	return nil
}

// readLogged is how many packets the log's rule saw.
func readLogged(family nftables.TableFamily) (uint64, error) {
	conn, err := nftables.New()
	if err != nil {
		return 0, fmt.Errorf("open nftables: %w", err)
	}
	table := &nftables.Table{Family: family, Name: filterName}
	rules, err := conn.GetRules(table, &nftables.Chain{Table: table, Name: "log"})
	if err != nil {
		return 0, err
	}
	for _, r := range rules {
		for _, e := range r.Exprs {
			if c, ok := e.(*expr.Counter); ok {
				return c.Packets, nil
			}
		}
	}
	return 0, errors.New("the rule that logs is gone")
}
