package run

import (
	"strings"
	"testing"

	"pelt/model"
)

func TestCodesOfHosts(t *testing.T) {
	for name, c := range map[string]struct {
		text, near, dut string
		want            hostCodes
		fault           string
	}{
		"one host":           {"a-code", "", "", hostCodes{far: "a-code"}, ""},
		"none":               {"", "", "", hostCodes{}, ""},
		"two for one":        {"a,b", "", "ssh://r", hostCodes{}, "want one code"},
		"near and far":       {"a, b", "n", "ssh://r", hostCodes{near: "a", far: "b"}, ""},
		"the near asks none": {",b", "n", "", hostCodes{far: "b"}, ""},
		"words": {"Tiger 42 Amber, otter-17-slate", "n", "",
			hostCodes{near: "Tiger 42 Amber", far: "otter-17-slate"}, ""},
		"three for two":        {"a,b,c", "n", "", hostCodes{}, "one code for both hosts, or two as NEAR,FAR"},
		"one for all":          {"a", "n", "pelt://r", hostCodes{"a", "a", "a"}, ""},
		"far and router":       {"a,b", "", "pelt://r", hostCodes{far: "a", router: "b"}, ""},
		"near, far and router": {"a,b,c", "n", "pelt://r", hostCodes{"a", "b", "c"}, ""},
		"one too few": {"a,b", "n", "pelt://r", hostCodes{},
			"one code for all hosts, or three as NEAR,FAR,ROUTER"},
		"one too many": {"a,b,c", "", "pelt://r", hostCodes{}, "one code for both hosts, or two as FAR,ROUTER"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := codesOf(c.text, model.Plan{Near: c.near, DUT: c.dut})
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) ||
				err == nil && got != c.want {
				t.Errorf("codes %+v, %v; want %+v, %q", got, err, c.want, c.fault)
			}
		})
	}
}

func TestRouterToAsk(t *testing.T) {
	for dut, ok := range map[string]bool{
		"": true, "ssh://root@r": true, "pelt://192.168.1.1": true, "pelt://r:7000": true, "pelt://[fe80::1%eth0]:7000": true,
		"pelt://": false, "pelt://root@r": false, "pelt://r:0": false, "pelt://r/x": false, "http://r": false,
	} {
		if err := checkRouter(model.Plan{Target: "192.168.2.10", DUT: dut}); (err == nil) != ok {
			t.Errorf("%q: %v, want it taken: %v", dut, err, ok)
		}
	}
}
