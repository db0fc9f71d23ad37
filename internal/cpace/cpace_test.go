package cpace

import (
	"bytes"
	"crypto/ecdh"
	"encoding/hex"
	"testing"
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The vectors of the draft, appendix B.1.
func TestDraftVectors(t *testing.T) {
	code := []byte("Password")
	channel := unhex(t, "0b415f696e69746961746f720b425f726573706f6e646572")
	sid := unhex(t, "7e4b4791d6a8ef019b936c79fb7f2c57")
	same := func(name string, got []byte, want string) {
		t.Helper()
		if hex.EncodeToString(got) != want {
			t.Errorf("%s: %x, want %s", name, got, want)
		}
	}
	same("generator", generator(code, channel, sid), "d04bf6d41f6a289632a2e929fa29bebd51092512a7829fdde7d314b62f05a73f")
	a, err := start(code, channel, sid, unhex(t, "21b4f4bd9e64ed355c3eb676a28ebedaf6d8f17bdc365995b319097153044080"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := start(code, channel, sid, unhex(t, "848b0779ff415f0af4ea14df9dd1d3c29ac41d836c7808896c4eba19c51ac40a"))
	if err != nil {
		t.Fatal(err)
	}
	same("Ya", a.Share, "1d13c89278cdadd826f6d8d7f887701430f8380ddc17611cdd6dc989ce0c9f32")
	same("Yb", b.Share, "248cccf6d5cdc3646f0ad593f9e6cef4e69d4945f8372e623512ecea32185623")
	ka, err := a.key(b.Share, true, []byte("ADa"), []byte("ADb"))
	if err != nil {
		t.Fatal(err)
	}
	kb, err := b.key(a.Share, false, []byte("ADb"), []byte("ADa"))
	if err != nil {
		t.Fatal(err)
	}
	const isk = "6e19b875f7a561d6b3ca3dbb9ef42ac55de3e717881018204b8922b4d5e53bb2" +
		"aa82c300bea7b65d2b671da71922ddf6472301b79bc270adfa8bf413285f2263"
	same("ISK of the initiator", ka.isk, isk)
	same("ISK of the responder", kb.isk, isk)
	if !ka.Proves(kb.Tag()) || !kb.Proves(ka.Tag()) || ka.Proves(ka.Tag()) {
		t.Error("the tags do not prove the key, or prove it to their own side")
	}
}

// Shares of low order must end the run; of others that are no usual numbers the product is known.
func TestLowOrderPoints(t *testing.T) {
	key, err := ecdh.X25519().NewPrivateKey(unhex(t,
		"af46e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449aff"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ share, product string }{
		{"0000000000000000000000000000000000000000000000000000000000000000", ""},
		{"0100000000000000000000000000000000000000000000000000000000000000", ""},
		{"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", ""},
		{"e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800", ""},
		{"5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157", ""},
		{"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", ""},
		{"daffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
			"d8e2c776bbacd510d09fd9278b7edcd25fc5ae9adfba3b6e040e8d3b71b21806"},
		{"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", ""},
		{"dbffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
			"c85c655ebe8be44ba9c0ffde69f2fe10194458d137f09bbff725ce58803cdb38"},
		{"d9ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
			"db64dafa9b8fdd136914e61461935fe92aa372cb056314e1231bc4ec12417456"},
		{"cdeb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b880",
			"e062dcd5376d58297be2618c7498f55baa07d7e03184e8aada20bca28888bf7a"},
		{"4c9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f11d7",
			"993c6ad11c4c29da9a56f7691fd0ff8d732e49de6250b6c2e80003ff4629a175"},
	} {
		run := &Run{scalar: key, Share: make([]byte, ShareBytes)}
		_, err := run.Key(unhex(t, c.share), true)
		if (err == nil) != (c.product != "") {
			t.Errorf("u%x: %v", i, err)
		}
		if got, err := multiply(key, unhex(t, c.share)); err == nil && hex.EncodeToString(got) != c.product {
			t.Errorf("u%x: %x, want %s", i, got, c.product)
		}
	}
}

func TestCodesAndChannelsMustAgree(t *testing.T) {
	for _, c := range []struct {
		name          string
		code, channel string
		agree         bool
	}{
		{"same", "tiger-42-amber", "one", true},
		{"another code", "tiger-42-umber", "one", false},
		{"another channel", "tiger-42-amber", "two", false}, // somebody in the middle has two
	} {
		a, _ := Start([]byte("tiger-42-amber"), []byte("one"))
		b, _ := Start([]byte(c.code), []byte(c.channel))
		ka, err := a.Key(b.Share, true)
		if err != nil {
			t.Fatal(err)
		}
		kb, err := b.Key(a.Share, false)
		if err != nil {
			t.Fatal(err)
		}
		if ka.Proves(kb.Tag()) != c.agree || kb.Proves(ka.Tag()) != c.agree ||
			bytes.Equal(ka.Derive("x"), kb.Derive("x")) != c.agree {
			t.Errorf("%s: they agree %v, want %v", c.name, !c.agree, c.agree)
		}
		if bytes.Equal(ka.Derive("x"), ka.Derive("y")) {
			t.Errorf("%s: two uses have one secret", c.name)
		}
	}
	r, _ := Start([]byte("x"), nil)
	if _, err := r.Key(make([]byte, ShareBytes-1), true); err == nil {
		t.Error("a short share was taken")
	}
}

func BenchmarkRun(b *testing.B) {
	peer, _ := Start([]byte("tiger-42-amber"), nil)
	for b.Loop() {
		r, _ := Start([]byte("tiger-42-amber"), nil)
		_, _ = r.Key(peer.Share, true)
	}
}
