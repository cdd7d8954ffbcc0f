package host

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/journal"
)

// identity is what must be the same for a run to be continued.
func identity(cfg *config.Config, ps *plugins) journal.Identity {
	affecting := make(map[string]any)
	for k, v := range cfg.ResultAffecting() {
		// Where a module or a data folder lies is not what it is: plugins are compared by digest.
		if strings.HasPrefix(k, "plugin.") && (strings.HasSuffix(k, ".source") || strings.Contains(k, ".grant.fs.")) {
			continue
		}
		affecting[k] = v
	}
	return journal.Identity{
		Version: Version(), Config: affecting, ConfigDigest: cfg.ResultDigest(), Plugins: ps.identities(),
		Command: cfg.Server.Command, Model: cfg.Model.Name,
		Tasks: journal.TaskSource{Plugin: cfg.Tasks.Plugin, Shuffle: cfg.Tasks.Shuffle, Seed: cfg.Tasks.Seed},
		TOML:  cfg.TOML(),
	}
}

// sameRun refuses, with the difference, to continue a run that would not be the same.
func sameRun(was, now journal.Identity) error {
	diff, err := was.Diff(now)
	if err != nil || len(diff) == 0 {
		return err
	}
	var b strings.Builder
	b.WriteString("this would be another run: what affects results has changed")
	for _, d := range diff {
		key := strings.TrimPrefix(d.Key, "config.")
		fmt.Fprintf(&b, "\n  - %s = %s\n  + %s = %s", key, value(d.Was), key, value(d.Now))
	}
	b.WriteString("\n  undo the change, or start a new run with wevalr run")
	return UsageError{fmt.Errorf("%s", b.String())}
}

// value is a leaf of an identity as the eval file has it: config values are TOML inside a JSON string.
func value(leaf string) string {
	var text string
	switch {
	case leaf == "":
		return "(none)"
	case json.Unmarshal([]byte(leaf), &text) == nil:
		return text
	}
	return leaf
}
