package procwatch

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is the directory of a control group of version 2 that holds one tree and was made for it
// (https://docs.kernel.org/admin-guide/cgroup-v2.html); "" is none, and then every method does nothing.
type cgroup string

// nameCgroup returns one that can be made, or why none can.
func nameCgroup() (cgroup, error) {
	parent, err := ownCgroup()
	if err != nil {
		return "", err
	}
	for _, path := range []string{parent, filepath.Join(parent, "cgroup.procs")} {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return "", &os.PathError{Op: "write", Path: path, Err: err}
		}
	}
	if err := delegated(parent); err != nil {
		return "", err
	}
	return cgroup(filepath.Join(parent, fmt.Sprintf("procwatch-%d-%s", os.Getpid(), rand.Text()[:12]))), nil
}

// ownCgroup returns our own group's directory (cgroups(7), "/proc files").
func ownCgroup() (string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	own := ""
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			own = strings.TrimSuffix(path, "\n")
		}
	}
	if own == "" {
		return "", errors.New("there are no control groups of version 2")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		// Fields 4 and 5 are the root within the file system and the mount point, octally escaped.
		mount, fs, _ := strings.Cut(line, " - ")
		f := strings.Fields(mount)
		if !strings.HasPrefix(fs, "cgroup2 ") || len(f) < 5 || strings.Contains(f[4], `\`) {
			continue
		}
		rel, err := filepath.Rel(f[3], own)
		if err == nil && filepath.IsLocal(rel) {
			return filepath.Join(f[4], rel), nil
		}
	}
	return "", fmt.Errorf("our control group %s is not mounted", own)
}

// delegated asks whether systemd, where it runs, has left the group to us. To others than root the
// permissions have said so already (https://systemd.io/CGROUP_DELEGATION).
func delegated(dir string) error {
	if _, err := os.Stat("/run/systemd/system"); err != nil || os.Geteuid() != 0 {
		return nil //nolint:nilerr // no systemd
	}
	value := make([]byte, 8)
	for d := dir; len(d) > 1; d = filepath.Dir(d) {
		for _, attr := range []string{"user.delegate", "trusted.delegate"} {
			if n, err := unix.Getxattr(d, attr, value); err == nil && string(value[:n]) == "1" {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is not delegated to us (Delegate=yes)", dir)
}

// make makes the group and checks that it can do what it is for.
func (g cgroup) make() error {
	if g == "" {
		return nil
	}
	if err := os.Mkdir(string(g), 0o700); err != nil {
		return err
	}
	kind, err := os.ReadFile(g.file("cgroup.type"))
	if err == nil && string(bytes.TrimSpace(kind)) != "domain" {
		err = fmt.Errorf("%s is of type %s", g, bytes.TrimSpace(kind))
	}
	if err == nil {
		_, err = os.Stat(g.file("cgroup.kill")) // Linux 5.14
	}
	if err != nil {
		_ = os.Remove(string(g))
	}
	return err
}

func (g cgroup) file(name string) string { return filepath.Join(string(g), name) }

// kill kills all that is in the group and below, and what is being forked there.
func (g cgroup) kill() {
	if g == "" {
		return
	}
	if f, err := os.OpenFile(g.file("cgroup.kill"), os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString("1")
		_ = f.Close()
	}
}

// dirs returns the group and those that the tree has made in it, the deepest last.
func (g cgroup) dirs() (out []string) {
	if g == "" {
		return nil
	}
	out = []string{string(g)}
	for i := 0; i < len(out); i++ {
		entries, _ := os.ReadDir(out[i])
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, filepath.Join(out[i], e.Name()))
			}
		}
	}
	return out
}

// members adds to tree what is in the group and not in tree. Zombies are not in a group.
func (g cgroup) members(tree []stat) []stat {
	known := make(map[int]bool, len(tree))
	for _, s := range tree {
		known[s.pid] = true
	}
	for _, dir := range g.dirs() {
		pids, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for field := range strings.FieldsSeq(string(pids)) {
			pid, err := strconv.Atoi(field)
			if err != nil || pid == 0 || known[pid] {
				continue
			}
			if s, ok := readStat(pid); ok {
				known[pid] = true
				tree = append(tree, s)
			}
		}
	}
	return tree
}

// remove removes the group, which has been killed. What dies holds it for a moment.
func (g cgroup) remove(limit time.Duration) {
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		dirs := g.dirs()
		for _, dir := range slices.Backward(dirs) {
			_ = os.Remove(dir)
		}
		if _, err := os.Stat(string(g)); g == "" || err != nil || time.Now().After(deadline) {
			return
		}
	}
}
