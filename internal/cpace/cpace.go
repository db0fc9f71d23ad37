// Package cpace agrees on a key with whoever knows the same code: CPACE-X25519-SHA512 of
// draft-irtf-cfrg-cpace-21. Who does not know the code learns nothing that would let them try
// codes without the peer: one run tests one code.
package cpace

import (
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha512"
	"errors"
	"slices"

	"filippo.io/edwards25519/field"
)

// Bytes of what goes over the wire.
const (
	ShareBytes = 32
	TagBytes   = sha512.Size
)

// ErrShare is of a share that no honest peer sends.
var ErrShare = errors.New("cpace: the peer's share is of low order")

const suite = "CPace255"

// Run is one side's part. It serves for one key.
type Run struct {
	scalar *ecdh.PrivateKey
	sid    []byte
	Share  []byte // what the peer gets
}

// Key is what both sides have in common after a run, if they knew the same code.
type Key struct {
	isk, sid  []byte
	own, peer []byte
}

// Start begins a run. Both sides must give the same channel, which names the protocol, who is
// who, and the connection.
func Start(code, channel []byte) (*Run, error) {
	scalar := make([]byte, 32)
	_, _ = rand.Read(scalar) // never fails
	return start(code, channel, nil, scalar)
}

func start(code, channel, sid, scalar []byte) (*Run, error) {
	key, err := ecdh.X25519().NewPrivateKey(scalar)
	if err != nil {
		return nil, err
	}
	share, err := multiply(key, generator(code, channel, sid))
	return &Run{key, sid, share}, err
}

// Key makes the key of both shares. The side that sent its share first is the initiator.
// Its error is [ErrShare].
func (r *Run) Key(peer []byte, initiator bool) (*Key, error) { return r.key(peer, initiator, nil, nil) }

// key has data that each side may add to its share.
func (r *Run) key(peer []byte, initiator bool, own, theirs []byte) (*Key, error) {
	secret, err := multiply(r.scalar, peer)
	if err != nil {
		return nil, ErrShare
	}
	first, second := prefixed(r.Share, own), prefixed(peer, theirs)
	if !initiator {
		first, second = second, first
	}
	sum := sha512.Sum512(slices.Concat(prefixed([]byte(suite+"_ISK"), r.sid, secret), first, second))
	return &Key{sum[:], r.sid, prefixed(r.Share, own), prefixed(peer, theirs)}, nil
}

// Tag proves to the peer that this side has the key.
func (k *Key) Tag() []byte { return k.tag(k.own) }

// Proves reports whether a tag is the peer's.
func (k *Key) Proves(tag []byte) bool { return hmac.Equal(tag, k.tag(k.peer)) }

func (k *Key) tag(message []byte) []byte {
	key := sha512.Sum512(slices.Concat([]byte("CPaceMac"), k.sid, k.isk))
	return mac(key[:], message)
}

// Derive makes a secret of 32 bytes for one use.
func (k *Key) Derive(use string) []byte { return mac(k.isk, []byte(use))[:32] }

func mac(key, message []byte) []byte {
	m := hmac.New(sha512.New, key)
	m.Write(message)
	return m.Sum(nil)
}

// prefixed joins parts, each after its length in LEB128.
func prefixed(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		n := len(p)
		for ; n >= 0x80; n >>= 7 {
			out = append(out, byte(n)|0x80)
		}
		out = append(append(out, byte(n)), p...)
	}
	return out
}

// generator is the point that a code stands for.
func generator(code, channel, sid []byte) []byte {
	pad := max(0, sha512.BlockSize-1-len(prefixed(code))-len(prefixed([]byte(suite))))
	sum := sha512.Sum512(prefixed([]byte(suite), code, make([]byte, pad), channel, sid))
	return elligator2(sum[:32])
}

// elligator2 maps 32 bytes to the u coordinate of a point of Curve25519, in constant time
// (RFC 9380 section 6.7.1, with Z = 2). It does not look at the highest bit.
func elligator2(b []byte) []byte {
	const a = 486662
	r, err := new(field.Element).SetBytes(b)
	if err != nil {
		panic(err) // of another length only
	}
	one := new(field.Element).One()
	curve := new(field.Element).Mult32(one, a)
	v := new(field.Element).Square(r)
	v.Add(v, v).Add(v, one) // never 0, for -1/2 is no square
	v.Invert(v).Multiply(v, curve).Negate(v)
	right := new(field.Element).Add(v, curve) // v(v²+av+1), which is v's side of the curve
	right.Multiply(right, v).Add(right, one).Multiply(right, v)
	_, square := new(field.Element).SqrtRatio(right, one)
	other := new(field.Element).Negate(v)
	other.Subtract(other, curve)
	return new(field.Element).Select(v, other, square).Bytes()
}

// multiply fails if the product is all zeros.
func multiply(k *ecdh.PrivateKey, u []byte) ([]byte, error) {
	p, err := ecdh.X25519().NewPublicKey(u)
	if err != nil {
		return nil, err
	}
	return k.ECDH(p)
}
