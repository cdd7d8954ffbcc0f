package envserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// offlinePrefix begins the names of the models that need no network.
const offlinePrefix = "offline/"

// newOffline makes the offline model name. Options that it does not know are errors.
func newOffline(name string, options map[string]any) (model, error) {
	switch strings.TrimPrefix(name, offlinePrefix) {
	case "demo":
		if err := onlyOptions(options, "wrong_rate", "latency"); err != nil {
			return nil, err
		}
		return newDemo(options)
	case "echo":
		return echo{}, onlyOptions(options)
	case "replay":
		if err := onlyOptions(options, "file"); err != nil {
			return nil, err
		}
		file, ok := options["file"].(string)
		if !ok || file == "" {
			return nil, fmt.Errorf("option file is missing: the recorded completions, one JSON object a line")
		}
		return openReplay(file)
	}
	return nil, fmt.Errorf("no such model: there are offline/demo, offline/echo and offline/replay")
}

func onlyOptions(options map[string]any, known ...string) error {
	for name := range options {
		if slices.Contains(known, name) {
			continue
		}
		if len(known) == 0 {
			return fmt.Errorf("option %s is unknown: the model takes none", name)
		}
		return fmt.Errorf("option %s is unknown: the model takes %s", name, strings.Join(known, ", "))
	}
	return nil
}

// answer is the completion of an offline model.
func answer(text string) completion {
	return completion{message: message{role: "assistant", content: text}, finish: "stop"}
}

// lastUser is what the user said last.
func lastUser(messages []message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].role == "user" {
			return messages[i].text()
		}
	}
	return ""
}

// echo answers with the last user message.
type echo struct{}

func (echo) complete(ctx context.Context, c *call) (completion, int, error) {
	if ctx.Err() != nil {
		return completion{}, 1, context.Cause(ctx)
	}
	return answer(lastUser(c.messages)), 1, nil
}

// pause waits for d, or for ctx's end, whose cause it returns.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
