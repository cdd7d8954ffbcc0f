package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"
)

const identityFormat = "wevalr.run/1"

// Identity is run.json: what must be the same for a run to be continued, and when it began. -n and
// -r are not in it, since they may grow.
type Identity struct {
	Format  string    `json:"format"` // filled in
	ID      string    `json:"id"`     // filled in
	Name    string    `json:"name"`   // filled in
	Created time.Time `json:"created"`
	// Version is wevalr's own.
	Version string `json:"version"`
	// Config holds the result-affecting keys, ConfigDigest their digest.
	Config       map[string]any   `json:"config"`
	ConfigDigest string           `json:"config_digest"`
	Plugins      []PluginIdentity `json:"plugins"`
	Command      []string         `json:"command,omitempty"`
	Model        string           `json:"model"`
	Tasks        TaskSource       `json:"tasks"`
	// TOML is the eval as resolved; it stands in config.toml, not in run.json.
	TOML []byte `json:"-"`
}

// PluginIdentity is one plugin of a run.
type PluginIdentity struct {
	Alias         string `json:"alias"`
	Plugin        string `json:"plugin"`
	Version       string `json:"version"`
	SHA256        string `json:"sha256"`
	ABI           string `json:"abi"`
	Grants        any    `json:"grants,omitempty"`
	OptionsDigest string `json:"options_digest,omitempty"`
}

// TaskSource is where the tasks come from and in which order.
type TaskSource struct {
	Plugin  string `json:"plugin"`
	Shuffle bool   `json:"shuffle"`
	Seed    int64  `json:"seed"`
}

// Difference is one value of an identity that is not the same; a missing one is "".
type Difference struct{ Key, Was, Now string }

// Diff lists where now differs from id in what affects results, by key. Empty: now may continue the
// run. wevalr's version is not compared: the plugins' digests and the config are.
func (id Identity) Diff(now Identity) ([]Difference, error) {
	was, err := id.leaves()
	if err != nil {
		return nil, err
	}
	is, err := now.leaves()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(was, func(k, v string) bool {
		same := is[k] == v
		if same {
			delete(is, k)
		}
		return same
	})
	keys := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(keys)
	var out []Difference
	for _, k := range slices.Compact(keys) {
		out = append(out, Difference{k, was[k], is[k]})
	}
	return out, nil
}

// leaves flattens what is compared: path → JSON of the value. The config's digest is left out: its
// values say more.
func (id Identity) leaves() (map[string]string, error) {
	plugins := map[string]any{}
	for _, p := range id.Plugins {
		plugins[p.Alias] = p
	}
	raw, err := json.Marshal(map[string]any{
		"config": id.Config, "plugins": plugins, "command": id.Command, "model": id.Model, "tasks": id.Tasks,
	})
	if err != nil {
		return nil, fmt.Errorf("journal: compare identities: %w", err)
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("journal: compare identities: %w", err)
	}
	out := map[string]string{}
	flatten(out, "", tree)
	return out, nil
}

func flatten(out map[string]string, path string, v any) {
	join := func(k string) string {
		if path == "" {
			return k
		}
		return path + "." + k
	}
	switch v := v.(type) {
	case nil: // the same as not there
	case map[string]any:
		for k, e := range v {
			flatten(out, join(k), e)
		}
	case []any:
		for i, e := range v {
			flatten(out, join(strconv.Itoa(i)), e)
		}
	default:
		raw, _ := json.Marshal(v) // a string, a number or a bool
		out[path] = string(raw)
	}
}

// ReadIdentity reads run.json and config.toml of a run and nothing else: cheap, and before [Open],
// which begins an attempt.
func ReadIdentity(dir string) (Identity, error) {
	var id Identity
	root, err := os.OpenRoot(dir)
	if err != nil {
		return id, fmt.Errorf("journal: read identity: %w", err)
	}
	defer root.Close()
	return readIdentity(root)
}

func readIdentity(root *os.Root) (Identity, error) {
	var id Identity
	raw, err := root.ReadFile(RunFile)
	if err != nil {
		return id, fmt.Errorf("journal: read identity: %w", err)
	}
	if err := json.Unmarshal(raw, &id); err != nil {
		return id, &CorruptError{File: RunFile, Err: err}
	}
	if id.Format != identityFormat {
		return id, &CorruptError{File: RunFile, Err: fmt.Errorf("format %q, this wevalr reads %s", id.Format, identityFormat)}
	}
	if id.TOML, err = root.ReadFile(ConfigFile); err != nil {
		return id, fmt.Errorf("journal: read identity: %w", err)
	}
	return id, nil
}
