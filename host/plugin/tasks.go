package plugin

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/wevalr/wevalr/plugins/abi"
)

// taskPage is how many tasks the host asks for at a time.
const taskPage = 1000

// What an enumeration may come to, so that it ends: each page has the limits of a call besides.
const (
	maxTasks = 10_000_000
	// pageCalls is how many calls' fuel all pages may burn together, or as much as fewPages cost.
	pageCalls = 20
	fewPages  = 2_000
	// pageWork and pageByte are what a page burns there for the host's work, and each byte of it.
	pageWork = 1_000_000
	pageByte = 16
)

// Tasks enumerates the plugin's tasks in its order: at most 10,000,000, within 20 calls' fuel. Keys are
// valid and unique, everything in a task can be stored as JSON, and keys that steer the server's machine
// are granted. An error of yield ends it and is returned as it is.
func (p *Plugin) Tasks(ctx context.Context, yield func(abi.Task) error) error {
	return p.withOwn(ctx, func(in *instance) error {
		return p.enumerate(ctx, in, maxTasks, yield)
	})
}

func (p *Plugin) enumerate(ctx context.Context, in *instance, most int, yield func(abi.Task) error) error {
	seen := map[[16]byte]struct{}{} // of keys the hash, which takes less
	var burnt int64
	for cursor := ""; ; {
		var page abi.TasksResponse
		c := p.newCall(abi.OpTasks, 0)
		err := p.onCore(ctx, c, func() error {
			_, err := p.ask(ctx, in, c, abi.TasksRequest{Cursor: cursor, Limit: taskPage}, &page)
			return err
		})
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			if err := p.checkTask(t); err != nil {
				return err
			}
			sum := sha256.Sum256([]byte(t.Key))
			key := [16]byte(sum[:16])
			if _, twice := seen[key]; twice {
				return p.badResponse(abi.OpTasks, "task key %q given twice", t.Key)
			}
			if len(seen) == most {
				return p.badResponse(abi.OpTasks, "more than %d tasks", most)
			}
			seen[key] = struct{}{}
			if err := yield(*t); err != nil {
				return err
			}
		}
		burnt += int64(c.tank.used()) + pageWork + pageByte*int64(c.answered)
		switch budget := max(pageCalls*c.tank.budget, fewPages*pageWork); {
		case page.Next == "":
			return nil
		case len(page.Tasks) == 0, page.Next == cursor:
			return p.badResponse(abi.OpTasks, "the enumeration stands still at cursor %q", cut(cursor, 100))
		case burnt >= budget:
			return &LimitError{
				Alias: p.spec.Alias, Op: opName(abi.OpTasks), Kind: "fuel",
				Limit: fmt.Sprintf("%s instructions for all pages, after %d tasks", FormatFuel(uint64(budget)), len(seen)),
			}
		}
		cursor = page.Next
	}
}

func (p *Plugin) checkTask(t *abi.Task) error {
	if !abi.ValidTaskKey(t.Key) {
		return p.badResponse(abi.OpTasks, "bad task key %q, want 1 to %d of [A-Za-z0-9._/:-] without ..",
			cut(t.Key, 2*abi.MaxTaskKey), abi.MaxTaskKey)
	}
	if t.Data == nil {
		return p.badResponse(abi.OpTasks, "task %s has no data", t.Key)
	}
	if k := ungranted(t.Data, p.grants.TaskEnv); k != "" {
		return p.badResponse(abi.OpTasks, "task %s sets data.%s, which steers the server's machine and needs the grant task_env = [%q]", t.Key, k, k)
	}
	target, err := plain(t.Target)
	if err == nil {
		t.Target = target
		err = plainMap(t.Data)
	}
	if err == nil {
		err = plainMap(t.Metadata)
	}
	if err != nil {
		return p.badResponse(abi.OpTasks, "task %s: %v", t.Key, err)
	}
	return nil
}
