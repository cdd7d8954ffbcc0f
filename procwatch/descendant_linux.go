package procwatch

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Descendants returns what is below the leader now, zombies included, in no order. One that is forked
// meanwhile may be missed. After the end, and on systems that do not tell (others than Linux), it is
// empty.
func (p *Proc) Descendants() []Descendant { return p.seen(below) }

// Children is Descendants without theirs: it costs less where there are many.
func (p *Proc) Children() []Descendant {
	return p.seen(func(leader int) []stat {
		direct, named := childrenOf(leader)
		if !named {
			direct = childrenAmong(processes(), leader)
		}
		return direct
	})
}

func (p *Proc) seen(from func(leader int) []stat) (out []Descendant) {
	if p.body.dead() {
		return nil
	}
	for _, s := range from(p.pid) {
		d := Descendant{Process: Process{PID: s.pid, Argv: argvOf(s.pid)}, Parent: s.ppid, Started: s.start, Ended: s.ended()}
		if d.Ended {
			var e Exit
			e.setStatus(s.status)
			d.Code, d.Signal, d.Signaled, d.CoreDumped = e.Code, e.Signal, e.Signaled, e.CoreDumped
		}
		out = append(out, d)
	}
	return out
}

// below returns the descendants of root.
func below(root int) (out []stat) {
	seen := map[int]bool{root: true}
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		direct, named := childrenOf(todo[0])
		if !named {
			return descendants(processes(), root)
		}
		for _, s := range direct {
			if !seen[s.pid] {
				seen[s.pid] = true
				out = append(out, s)
				todo = append(todo, s.pid)
			}
		}
	}
	return out
}

// childrenOf returns the children of a process, and whether the kernel names them (proc_tid_children(5)):
// one that was built without that makes us look at every process.
func childrenOf(pid int) (out []stat, named bool) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		b, err := os.ReadFile(filepath.Join(task, "children"))
		if err != nil {
			if _, err := os.Stat(task); err == nil {
				return nil, false
			}
			continue // it ended
		}
		for field := range strings.FieldsSeq(string(b)) {
			n, err := strconv.Atoi(field)
			if s, ok := readStat(n); err == nil && ok && s.ppid == pid {
				out = append(out, s)
			}
		}
	}
	return out, true
}

func childrenAmong(all map[int]stat, pid int) (out []stat) {
	for _, s := range all {
		if s.ppid == pid {
			out = append(out, s)
		}
	}
	return out
}
