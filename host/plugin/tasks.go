package plugin

import (
	"context"

	"github.com/wevalr/wevalr/plugins/abi"
)

// taskPage is how many tasks the host asks for at a time.
const taskPage = 1000

// Tasks enumerates the plugin's tasks in its order. Keys are valid and unique, everything in a task
// can be stored as JSON, and keys that steer the server's machine are granted. An error of yield ends
// it and is returned as it is.
func (p *Plugin) Tasks(ctx context.Context, yield func(abi.Task) error) error {
	seen := map[string]struct{}{}
	return p.withOwn(ctx, func(in *instance) error {
		cursor := ""
		for {
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
				if _, twice := seen[t.Key]; twice {
					return p.badResponse(abi.OpTasks, "task key %q given twice", t.Key)
				}
				seen[t.Key] = struct{}{}
				if err := yield(*t); err != nil {
					return err
				}
			}
			switch {
			case page.Next == "":
				return nil
			case len(page.Tasks) == 0, page.Next == cursor:
				return p.badResponse(abi.OpTasks, "the enumeration stands still at cursor %q", cut(cursor, 100))
			}
			cursor = page.Next
		}
	})
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
