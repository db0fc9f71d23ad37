package unit

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
	"time"
)

// MaxPacketsPerSecond bounds every asked rate: one packet a nanosecond, the resolution of the pacing clock.
const MaxPacketsPerSecond = 1_000_000_000

// Rate is how fast packets are offered. The zero value means "as fast as the sender can". A rate is kept as the
// user asked for it, so that no precision is lost before the payload size is known.
type Rate struct {
	num, den uint64 // packets per second, payload bits per second, or seconds per packet, as num/den
	kind     rateKind
}

type rateKind uint8

const (
	rateMax rateKind = iota
	ratePackets
	rateBits
	rateInterval
)

// PacketRate is an exact rate of n packets per second.
func PacketRate(n uint64) Rate { return Rate{num: n, den: 1, kind: ratePackets} }

// IntervalRate is one packet every d.
func IntervalRate(d time.Duration) Rate {
	if d <= 0 {
		return Rate{}
	}
	return Rate{num: uint64(d), den: uint64(time.Second), kind: rateInterval}
}

// IsMax reports whether the rate is unpaced.
func (r Rate) IsMax() bool { return r.kind == rateMax }

// Schedule is a packet clock: packet n is due n*Nanos/Packets nanoseconds after the start.
type Schedule struct {
	Packets, Nanos uint64
}

// Schedule returns the exact packet clock of the rate for one payload size in
// bytes. ok is false for the unpaced rate.
func (r Rate) Schedule(payloadBytes int) (s Schedule, ok bool) {
	if r.kind == rateMax {
		return Schedule{}, false
	}
	packets, nanos := new(big.Int).SetUint64(r.num), new(big.Int).SetUint64(r.den)
	if r.kind == rateInterval {
		packets, nanos = nanos, packets
	}
	if r.kind == rateBits {
		nanos.Mul(nanos, big.NewInt(int64(8*max(payloadBytes, 1))))
	}
	nanos.Mul(nanos, big.NewInt(1e9))
	g := new(big.Int).GCD(nil, nil, packets, nanos)
	packets.Quo(packets, g)
	nanos.Quo(nanos, g)
	// Only absurd fractions pass 64 bits; halving both keeps more than 60 bits of precision.
	for packets.BitLen() > 63 || nanos.BitLen() > 63 {
		packets.Rsh(packets, 1)
		nanos.Rsh(nanos, 1)
	}
	return Schedule{Packets: max(packets.Uint64(), 1), Nanos: max(nanos.Uint64(), 1)}, true
}

// Due returns when packet n (from 0) is due, in nanoseconds after the start,
// rounded down. It saturates at the largest int64.
func (s Schedule) Due(n uint64) int64 {
	hi, lo := bits.Mul64(n, s.Nanos)
	if hi >= s.Packets {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, s.Packets)
	return int64(min(q, math.MaxInt64))
}

// Count returns how many packets are due before the elapsed nanoseconds have
// passed: the number of n with Due(n) < elapsed.
func (s Schedule) Count(elapsedNanos int64) uint64 {
	if elapsedNanos <= 0 {
		return 0
	}
	// floor(n*Nanos/Packets) < e  <=>  n*Nanos < e*Packets  <=>  n < ceil(e*Packets/Nanos)
	hi, lo := bits.Mul64(uint64(elapsedNanos), s.Packets)
	if hi >= s.Nanos {
		return math.MaxUint64
	}
	q, rem := bits.Div64(hi, lo, s.Nanos)
	if rem > 0 {
		q++
	}
	return q
}

// PPS returns the schedule's packets per second.
func (s Schedule) PPS() float64 { return float64(s.Packets) / float64(s.Nanos) * 1e9 }

// PPS returns the packets per second that the rate means at a payload size; ok is false for the unpaced rate.
func (r Rate) PPS(payloadBytes int) (pps float64, ok bool) {
	s, ok := r.Schedule(payloadBytes)
	if !ok {
		return 0, false
	}
	return s.PPS(), true
}

const rateWant = "want max, packets per second as 150kpps or 1.5Mpps, or payload bits per second as 95mbit"

var packetUnits = []scale{{"gpps", 1e9}, {"mpps", 1e6}, {"kpps", 1e3}, {"pps", 1}}
var bitUnits = []scale{
	{"gbit/s", 1e9}, {"mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1},
	{"gbps", 1e9}, {"mbps", 1e6}, {"kbps", 1e3}, {"bps", 1},
	{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1},
}

type scale struct {
	suffix string
	factor int64
}

// ParseRate reads "max", "150kpps", "95mbit" (payload bits per second) or an
// interval between packets such as "every 5ms". Case does not matter.
func ParseRate(text string) (Rate, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	if t == "max" {
		return Rate{}, nil
	}
	if rest, ok := strings.CutPrefix(t, "every "); ok {
		d, err := ParseDuration(rest)
		if err != nil {
			return Rate{}, err
		}
		if d <= 0 {
			return Rate{}, wrong("rate", text, "the interval must be more than 0; for full speed use max")
		}
		if d > 24*time.Hour {
			return Rate{}, wrong("rate", text, "is less than a packet a day")
		}
		return IntervalRate(d), nil
	}
	kind, value, ok := ratePackets, (*big.Rat)(nil), false
	if value, ok = scaled(t, packetUnits); !ok {
		kind = rateBits
		if value, ok = scaled(t, bitUnits); !ok {
			return Rate{}, wrong("rate", text, rateWant)
		}
	}
	if value.Sign() <= 0 {
		return Rate{}, wrong("rate", text, "must be more than 0; for full speed use max")
	}
	limit := int64(MaxPacketsPerSecond)
	if kind == rateBits {
		limit = 10e12
	}
	if value.Cmp(new(big.Rat).SetInt64(limit)) > 0 {
		return Rate{}, wrong("rate", text,
			"is beyond what can be asked: at most 1Gpps or 10000gbit; for full speed use max")
	}
	if value.Cmp(big.NewRat(1, 86400)) < 0 {
		return Rate{}, wrong("rate", text, "is less than a packet a day")
	}
	if !value.Num().IsUint64() || !value.Denom().IsUint64() {
		return Rate{}, wrong("rate", text, "has too many digits")
	}
	return Rate{num: value.Num().Uint64(), den: value.Denom().Uint64(), kind: kind}, nil
}

// String gives text that ParseRate reads back to the same rate.
func (r Rate) String() string {
	switch r.kind {
	case ratePackets:
		return exact(r.num, r.den, packetUnits, []string{"Gpps", "Mpps", "kpps", "pps"})
	case rateBits:
		return exact(r.num, r.den, bitUnits[8:], []string{"gbit", "mbit", "kbit", "bit"})
	case rateInterval:
		return "every " + time.Duration(r.num).String()
	default:
		return "max"
	}
}

// Short is the rate in about three digits: "130 kpps", "95 Mbit/s".
func (r Rate) Short() string {
	switch v := float64(r.num) / float64(r.den); r.kind {
	case ratePackets:
		return PPS.Exact(v)
	case rateBits:
		return BPS.Exact(v)
	}
	return r.String()
}

// MarshalText makes the rate one string in JSON and YAML.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what ParseRate reads.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRate(string(b))
	return err
}

// BitRate is whole bits per second; 0 means unlimited.
type BitRate uint64

const bitRateWant = "want bits per second, as 1gbit or 95.5mbit"

// ParseBitRate reads "1gbit", "95.5mbit", "1000kbit/s".
func ParseBitRate(text string) (BitRate, error) {
	v, ok := scaled(strings.ToLower(strings.TrimSpace(text)), bitUnits)
	if !ok || v.Sign() <= 0 {
		return 0, wrong("bit rate", text, bitRateWant)
	}
	if v.Cmp(new(big.Rat).SetInt64(10e12)) > 0 {
		return 0, wrong("bit rate", text, "is beyond 10000gbit")
	}
	n := new(big.Int).Quo(v.Num(), v.Denom())
	if n.Sign() == 0 {
		return 0, wrong("bit rate", text, "is less than 1 bit/s")
	}
	return BitRate(n.Uint64()), nil
}

// String gives text that ParseBitRate reads back; "unlimited" for 0.
func (b BitRate) String() string {
	if b == 0 {
		return "unlimited"
	}
	return exact(uint64(b), 1, bitUnits[8:], []string{"gbit", "mbit", "kbit", "bit"})
}

// MarshalJSON writes plain bits per second.
func (b BitRate) MarshalJSON() ([]byte, error) { return json.Marshal(uint64(b)) }

func scaled(text string, units []scale) (*big.Rat, bool) {
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		v, ok := decimal(strings.TrimSpace(number))
		if !ok {
			return nil, false
		}
		return v.Mul(v, new(big.Rat).SetInt64(u.factor)), true
	}
	return nil, false
}

// decimal reads a plain decimal number or a fraction "1/3", of bounded length:
// big.Rat would take "1e999999999" and spend the memory.
func decimal(s string) (*big.Rat, bool) {
	// The longest that String writes is a fraction of two 64-bit numbers: 41 digits and signs.
	if s == "" || len(s) > 48 || strings.Trim(s, "0123456789./") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

func exact(num, den uint64, units []scale, names []string) string {
	v := new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
	for i, u := range units[:len(names)] {
		f := new(big.Rat).SetInt64(u.factor)
		if v.Cmp(f) < 0 && i < len(names)-1 {
			continue
		}
		f.Quo(v, f)
		if f.IsInt() {
			return f.Num().String() + names[i]
		}
		if text := strings.TrimRight(f.FloatString(9), "0"); len(text) < 16 {
			if back, ok := decimal(text); ok && back.Cmp(f) == 0 {
				return text + names[i]
			}
		}
		if i == len(names)-1 || v.IsInt() {
			return fmt.Sprintf("%s%s", v.RatString(), names[len(names)-1])
		}
	}
	return v.RatString() + names[len(names)-1]
}
