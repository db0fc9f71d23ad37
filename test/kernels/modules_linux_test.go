package kernels

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is one kernel module, uncompressed.
type module struct {
	name    string // with underscores, as the kernel writes it
	content []byte
}

// moduleTree finds modules in a directory lib/modules/RELEASE as a package
// brings it, without what depmod would add.
type moduleTree struct {
	files   map[string]string // name -> file
	builtin map[string]bool
}

func readModuleTree(dir string) (moduleTree, error) {
	tree := moduleTree{files: map[string]string{}, builtin: map[string]bool{}}
	list, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return tree, err
	}
	for line := range strings.Lines(string(list)) {
		tree.builtin[moduleName(strings.TrimSpace(line))] = true
	}
	err = filepath.WalkDir(filepath.Join(dir, "kernel"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), ".ko") {
			tree.files[moduleName(path)] = path
		}
		return err
	})
	return tree, err
}

func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// load reads modules and all they depend on, each after its dependencies.
func (t moduleTree) load(names ...string) ([]module, error) {
	var order []module
	var add func(string) error
	add = func(name string) error {
		if t.builtin[name] || slices.ContainsFunc(order, func(m module) bool { return m.name == name }) {
			return nil
		}
		path, ok := t.files[name]
		if !ok {
			return fmt.Errorf("module %s: this kernel has none", name)
		}
		content, err := readModule(path)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		depends, err := moduleDepends(content)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, d := range depends {
			if err := add(moduleName(d)); err != nil {
				return fmt.Errorf("needed by %s: %w", name, err)
			}
		}
		order = append(order, module{name, content})
		return nil
	}
	for _, n := range names {
		if err := add(n); err != nil {
			return nil, err
		}
	}
	return order, nil
}

func readModule(path string) ([]byte, error) {
	if strings.HasSuffix(path, ".ko.xz") {
		return exec.Command("xz", "--decompress", "--stdout", path).Output()
	}
	return os.ReadFile(path)
}

// moduleDepends reads what modprobe's modules.dep is made from: the entry
// depends= of the section .modinfo.
func moduleDepends(content []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(entry, "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}
