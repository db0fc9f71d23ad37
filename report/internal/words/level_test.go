package words

import "testing"

func TestLevel(t *testing.T) {
	tests := []struct {
		key  string
		v    float64
		want string
	}{
		{"payload_bytes", 1472, "1472"},
		{"rate_pps", 10e3, "10 kpps"},
		{"rate_pps", 12345, "12.345 kpps"},
		{"interval_ns", 0, "unpaced"},
		{"interval_ns", 12e6, "12 ms"},
		{"streams", 4, "4"},
		{"loss_ratio", 0.125, "12.5 %"},
		{"link.loss_ratio", 0.0005, "0.05 %"},
		{"link.loss_ratio", 0.0001, "0.01 %"},
		{"link.delay_s", 0.04, "40 ms"},
		{"link-receiver.rate_bps", 100e6, "100 Mbit/s"},
		{"link.queue_packets", 1000, "1 000 packets"},
	}
	for _, c := range tests {
		if got := Level(c.key, c.v); got != c.want {
			t.Errorf("Level(%s, %g): %q; want %q", c.key, c.v, got, c.want)
		}
	}
}
