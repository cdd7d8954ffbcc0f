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
func (p *Proc) Descendants() (out []Descendant) {
	if p.body.dead() {
		return nil
	}
	for _, s := range below(p.pid) {
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

// below returns the descendants of root. The kernel names a process's children (proc_tid_children(5)),
// which is cheaper than to look at every process; one that was built without it makes us do that.
func below(root int) (out []stat) {
	seen := map[int]bool{root: true}
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", todo[0]))
		for _, task := range tasks {
			b, err := os.ReadFile(filepath.Join(task, "children"))
			if err != nil {
				if _, err := os.Stat(task); err == nil {
					return descendants(processes(), root)
				}
				continue // it ended
			}
			for field := range strings.FieldsSeq(string(b)) {
				pid, err := strconv.Atoi(field)
				if err != nil || seen[pid] {
					continue
				}
				if s, ok := readStat(pid); ok {
					seen[pid] = true
					out = append(out, s)
					todo = append(todo, pid)
				}
			}
		}
	}
	return out
}
