package counters

import "testing"

func here(f func() error) error { return f() }

func TestRead(t *testing.T) {
	r, err := Open(here, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := r.Read()
	for _, x := range s.readings {
		t.Log(x.name, x.part, x.value, x.unit)
	}
	t.Log(s.Unread, s.Interfaces(), s.Settling(), r.Namespace())
	for _, c := range Diff(Snapshot{}, s, Snapshot{}, r.Read(), 0) {
		t.Logf("%+v", c)
	}
}

func BenchmarkRead(b *testing.B) {
	r, err := Open(here, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportAllocs()
	for b.Loop() {
		r.Read()
	}
}

func TestKnobs(t *testing.T) {
	for _, k := range Knobs(here, "eth0") {
		t.Log(k.Name, "=", k.Value)
	}
}
