package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
)

// TestSmallBuild: hosts with the build for small routers are the ends of a test, and the build is as small as told.
func TestSmallBuild(t *testing.T) {
	testenv.Root(t)
	t.Parallel()
	trySmall(t, smallBuild(t, runtime.GOARCH))
}

// TestNightlySmallBuilds is the same on the processors of routers.
func TestNightlySmallBuilds(t *testing.T) {
	testenv.Nightly(t)
	testenv.Root(t)
	for _, arch := range []string{"mips", "arm"} {
		t.Run(arch, func(t *testing.T) {
			testenv.Tool(t, "qemu-"+arch)
			trySmall(t, "qemu-"+arch, smallBuild(t, arch))
		})
	}
}

// mostOfSmall is what README says of the small build, in bytes.
const mostOfSmall = 15e6

// smallBuild builds pelt for small routers, as packaging/build does but for the paths of sources: so the cache has most.
func smallBuild(t *testing.T, arch string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pelt")
	build := exec.Command("go", "build", "-tags", "small", "-ldflags", "-s -w", "-o", file, "pelt/cmd/pelt")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOMIPS=softfloat", "GOARM=6")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(file)
	testenv.Must(t, err)
	if t.Logf("%s: %.2f MB", arch, float64(info.Size())/1e6); info.Size() > mostOfSmall {
		t.Errorf("the build for %s is of %d bytes, want %.0f at most", arch, info.Size(), mostOfSmall)
	}
	return file
}

// trySmall has two hosts with a program join a fleet and test the path between them.
func trySmall(t *testing.T, program ...string) {
	t.Helper()
	f := newFleet(t, 2)
	f.begin()
	start := func(name string, args ...string) *peltproc.Process {
		words := append(program[:len(program):len(program)], args...)
		return f.on(f.hosts[name], name).Launch(exec.Command(words[0], words[1:]...))
	}
	if p := start("h1", "doctor"); p.Code() != 0 || !strings.Contains(p.Out.String(), "receive buffer") {
		t.Errorf("doctor:\n%s", p)
	}
	lacks := start("h1", "curve", "10.90.1.2")
	if code, text := lacks.Code(), lacks.String(); code != 2 || !strings.Contains(text, `"curve" is not in this small pelt`) ||
		strings.Count(text, "\n") != 1 {
		t.Errorf("a command that it lacks: exit code %d\n%s", code, text)
	}
	for _, name := range f.names {
		f.agents[name] = start(name, "join", "10.90.0.1", "--name", name)
	}
	for _, name := range f.names {
		f.agents[name].Await("joined as " + name)
	}
	p := f.control("test", "curve fleet:h1..h2 --payload 200 --rate 500pps --time 1s --repeats 1 --json -")
	if code := p.Code(); code != 0 && code != invalid {
		t.Fatalf("exit code %d\n%s", code, p)
	}
	d := told(t, p)
	if len(d.Results) != 1 || len(d.Results[0].Flows) != 1 || d.Results[0].Flows[0].Received == 0 {
		t.Errorf("nothing came through:\n%s", p)
	}
}
