package kernels

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// initramfs is the guest's root file system: absolute path -> content.
type initramfs map[string][]byte

// addFile takes a file of this machine.
func (fsys initramfs) addFile(at, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	fsys[at] = content
	return nil
}

// addTree takes a directory of this machine, if it is there.
func (fsys initramfs) addTree(at, dir string) error {
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		below, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		return fsys.addFile(path.Join(at, filepath.ToSlash(below)), file)
	})
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// addProgram takes a program of this machine into /bin, with the libraries
// that its loader would give it here, at their own paths.
func (fsys initramfs) addProgram(name string) error {
	file, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	if err := fsys.addFile("/bin/"+name, file); err != nil {
		return err
	}
	loader, err := interpreter(fsys["/bin/"+name])
	if err != nil || loader == "" {
		return err
	}
	out, err := exec.Command(loader, "--list", file).Output()
	if err != nil {
		return fmt.Errorf("list the libraries of %s: %w", name, err)
	}
	libraries := []string{loader}
	for line := range strings.Lines(string(out)) { // libmnl.so.0 => /lib/x86_64-linux-gnu/libmnl.so.0 (0x7f...)
		if _, file, ok := strings.Cut(line, "=> "); ok {
			file, _, _ = strings.Cut(file, " (")
			libraries = append(libraries, strings.TrimSpace(file))
		}
	}
	for _, l := range libraries {
		if err := fsys.addFile(l, l); err != nil {
			return fmt.Errorf("library of %s: %w", name, err)
		}
	}
	return nil
}

// interpreter is the loader that a dynamic program names; "" of a static one.
func interpreter(program []byte) (string, error) {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return "", err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(p.Open())
			return strings.TrimRight(string(b), "\x00"), err
		}
	}
	return "", nil
}

// addOrder writes what the guest is to do, and the modules it begins with.
func (fsys initramfs) addOrder(modules []module, commands []Command) error {
	order := Order{Commands: commands}
	for _, m := range modules {
		file := "/modules/" + m.name + ".ko"
		fsys[file] = m.content
		order.Modules = append(order.Modules, file)
	}
	b, err := json.Marshal(order)
	fsys[OrderFile] = b
	return err
}

// writeTo writes the archive that the kernel unpacks: cpio in its "newc" form,
// Documentation/driver-api/early-userspace/buffer-format.rst. All files are
// executable and root's.
func (fsys initramfs) writeTo(file io.Writer) error {
	w := bufio.NewWriter(file)
	inode := 0
	entry := func(name string, mode int, content []byte) {
		inode++
		// magic, inode, mode, uid, gid, links, mtime, size, major, minor, rmajor, rminor, length of name with its NUL,
		// checksum
		fmt.Fprintf(w, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", inode, mode, 0, 0, 1, 0,
			len(content), 0, 0, 0, 0, len(name)+1, 0)
		w.WriteString(name + "\x00")
		pad(w, 110+len(name)+1)
		w.Write(content)
		pad(w, len(content))
	}
	directories := map[string]bool{}
	for name := range fsys {
		for d := path.Dir(name); d != "/"; d = path.Dir(d) {
			directories[d] = true
		}
	}
	for _, d := range slices.Sorted(maps.Keys(directories)) {
		entry(d[1:], 0o040755, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(fsys)) {
		entry(name[1:], 0o100755, fsys[name])
	}
	entry("TRAILER!!!", 0, nil)
	return w.Flush() // which tells of any write's error
}

// pad fills up to four bytes' bounds after n bytes.
func pad(w *bufio.Writer, n int) { w.Write(make([]byte, -n&3)) }
