package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"

	"github.com/BurntSushi/toml"
)

// Entry is one value of a resolved config, for those who show it.
type Entry struct {
	Key    string // dotted; plugins by alias: plugin.gsm8k.source
	Value  string // as TOML
	Origin string // as Config.Origin
}

// Entries are all values in the order of TOML.
func (c *Config) Entries() []Entry {
	var out []Entry
	c.walk(func(key toml.Key, n *node) {
		k := key.String()
		out = append(out, Entry{Key: k, Value: n.text, Origin: c.Origin(k)})
	})
	return out
}

// ResultAffecting maps each key that a resumed run must have as before to its value as TOML.
// Left out are counts (tasks.num_tasks, tasks.num_rollouts), concurrency, timeouts, retries, the
// name of the key's variable, and of [server] all but its kind and command. Plugins go by alias,
// scores by plugin and scorer, so that their order does not matter.
func (c *Config) ResultAffecting() map[string]string {
	out := map[string]string{"server.kind": quote(c.Server.Kind())}
	if c.Server.Kind() == Command {
		out["server.command"] = inline(plain(c.Server.Command))
	}
	c.walk(func(key toml.Key, n *node) {
		if n.free || key[0] == "version" || key[0] == "name" {
			return
		}
		if key[0] == "score" {
			i, _ := strconv.Atoi(key[1])
			s := c.Score[i]
			scorer := s.Scorer
			if scorer == "" {
				scorer = "*"
			}
			id := toml.Key{"score", s.Plugin, scorer}
			out[id.String()] = "true"
			if key[2] != "options" {
				return
			}
			key = append(id, key[2:]...)
		}
		out[key.String()] = n.text
	})
	return out
}

// ResultDigest is the sha256, in hex, of ResultAffecting's lines `key = value` in order.
func (c *Config) ResultDigest() string {
	var text []byte
	m := c.ResultAffecting()
	for _, k := range sorted(m) {
		text = fmt.Appendf(text, "%s = %s\n", k, m[k])
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// DiffResult compares two ResultAffecting line by line: "- key = before", "+ key = now".
func DiffResult(before, now map[string]string) []string {
	all := map[string]bool{}
	for k := range before {
		all[k] = true
	}
	for k := range now {
		all[k] = true
	}
	var out []string
	for _, k := range sorted(all) {
		was, had := before[k]
		is, has := now[k]
		if had && has && was == is {
			continue
		}
		if had {
			out = append(out, "- "+k+" = "+was)
		}
		if has {
			out = append(out, "+ "+k+" = "+is)
		}
	}
	return out
}

// walk visits every value that is no table.
func (c *Config) walk(visit func(key toml.Key, n *node)) {
	var descend func(path toml.Key, nodes []node)
	descend = func(path toml.Key, nodes []node) {
		for i := range nodes {
			n := &nodes[i]
			key := child(path, n.key)
			switch {
			case n.rows != nil:
				for j, row := range n.rows {
					elem := strconv.Itoa(j)
					if len(key) == 1 && n.key == "plugin" {
						elem = c.Plugins[j].Name
					}
					descend(child(key, elem), row)
				}
			case n.isTable():
				descend(key, n.kids)
			default:
				visit(key, n)
			}
		}
	}
	descend(nil, dump(reflect.ValueOf(c).Elem(), false))
}

// origins knows where the values of a Config came from.
type origins struct {
	src     *source
	plugins map[string]string // alias → index
}

func newOrigins(b *binder, plugins []Plugin) origins {
	o := origins{src: &source{file: b.file, lines: b.lines, from: b.from}, plugins: map[string]string{}}
	for i := range plugins {
		o.plugins[plugins[i].Name] = strconv.Itoa(i)
	}
	return o
}

// Origin says where a key's value came from: "flag -n", "--set run.retries", "eval.toml:12" or
// "default". Plugins go by alias or index: plugin.gsm8k.source, plugin.0.source.
func (c *Config) Origin(key string) string {
	o := &c.origins
	path, rest := splitKey(key)
	if o.src == nil || rest != "" {
		return "default"
	}
	if len(path) > 1 && path[0] == "plugin" {
		if i, ok := o.plugins[path[1]]; ok {
			path = append(toml.Key{"plugin", i}, path[2:]...)
		}
	}
	name := path.String()
	if f, ok := o.src.from[name]; ok {
		return f
	}
	if n, ok := o.src.lines[name]; ok {
		return fmt.Sprintf("%s:%d", o.src.file, n)
	}
	return "default"
}
