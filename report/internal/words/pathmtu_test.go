package words

import (
	"testing"

	"pelt/model"
)

func TestPathMTU(t *testing.T) {
	up := model.PathMTU{Flow: "up", Family: 4, Bytes: 1400, PayloadBytes: 1372, Found: model.MTUTold}
	down := model.PathMTU{Flow: "down", Family: 4, Bytes: 1500, PayloadBytes: 1472, Found: model.MTUOfRoute}
	same := up
	same.Flow = "down"
	for _, c := range []struct {
		name string
		list []model.PathMTU
		want string
	}{
		{"not asked", nil, ""},
		{"one", []model.PathMTU{up}, "path MTU 1400 B (an ICMP message said it): UDP payloads up to 1372 B stay whole"},
		{"alike", []model.PathMTU{up, same}, "path MTU 1400 B (an ICMP message said it): UDP payloads up to 1372 B stay whole"},
		{"two", []model.PathMTU{up, down}, "path MTU up 1400 B (an ICMP message said it), down 1500 B (all that the route takes): " +
			"UDP payloads up to 1372 B and 1472 B stay whole"},
		{"black hole", []model.PathMTU{{Flow: "up", Bytes: 1420, PayloadBytes: 1392, Found: model.MTUSearch}},
			"path MTU 1420 B (found by trying: larger packets vanish): UDP payloads up to 1392 B stay whole"},
		{"cut", []model.PathMTU{{Flow: "up", Bytes: 1200, PayloadBytes: 1172, Found: model.MTUSearch, AtLeast: true, Why: "the search was not over after 1s"}},
			"path MTU at least 1200 B (the search was not over after 1s): UDP payloads up to 1172 B stay whole"},
		{"unknown", []model.PathMTU{{Flow: "up", Why: "no probe was answered\x1b[31m"}}, "path MTU unknown (no probe was answered·[31m)"},
		{"hostile", []model.PathMTU{{Flow: "up", Bytes: -3, PayloadBytes: -9}}, "path MTU unknown"},
	} {
		if got := PathMTU(model.Document{PathMTU: c.list}); got != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}
