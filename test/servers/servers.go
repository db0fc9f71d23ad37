// Package servers has what tests need to run NATS servers of a user's own: an account, and the options of servers
// that let in nobody else. Only tests import it.
package servers

import (
	"fmt"
	"os"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// Account is the one that servers know.
type Account struct {
	Operator, Name string // public keys
	Token          string
}

// NewAccount makes one with one user, whose credentials it writes to a file.
func NewAccount(t testing.TB, credentials string) Account {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	operator, err := nkeys.CreateOperator()
	must(err)
	account, err := nkeys.CreateAccount()
	must(err)
	user, err := nkeys.CreateUser()
	must(err)
	name := func(k nkeys.KeyPair) string { p, err := k.PublicKey(); must(err); return p }
	a := Account{Operator: name(operator), Name: name(account)}
	a.Token, err = jwt.NewAccountClaims(a.Name).Encode(operator)
	must(err)
	userToken, err := jwt.NewUserClaims(name(user)).Encode(account)
	must(err)
	seed, err := user.Seed()
	must(err)
	file, err := jwt.FormatUserConfig(userToken, seed)
	must(err)
	must(os.WriteFile(credentials, file, 0o600))
	return a
}

// RoutesToEach is how many connections a server has to each other one of its cluster. Before all of them are there, one
// of the servers may not know yet who is connected to another.
const RoutesToEach = server.DEFAULT_ROUTE_POOL_SIZE + 1 // for the system's own account

// Options are those of one of the servers of a cluster. -1 is any port.
func (a Account) Options(number int, host string, port, clusterPort int) (*server.Options, error) {
	resolver := &server.MemAccResolver{}
	return &server.Options{ServerName: fmt.Sprint("n", number), Host: host, Port: port, NoSigs: true, NoLog: true,
		Cluster:         server.ClusterOpts{Name: "own", Host: host, Port: clusterPort},
		TrustedKeys:     []string{a.Operator},
		AccountResolver: resolver,
	}, resolver.Store(a.Name, a.Token)
}
