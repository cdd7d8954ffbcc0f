package config

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// check finds what types cannot say. Values that were already reported are zero here and skipped.
func (l Loader) check(b *binder, c *Config) {
	if !b.given("version") {
		b.report(toml.Key{"version"}, "add version = 1 at the top", "missing")
	} else if !b.checkVersion(c.Version) {
		return
	}
	l.checkPlugins(b, c)
	b.checkRefs(c)
	if _, err := path.Match(c.Tasks.Select, ""); err != nil {
		b.report(toml.Key{"tasks", "select"}, "write a glob such as \"test-1*\"; * does not match /", "%v", err)
	}
	if c.Prompt.Template != "" && !strings.Contains(c.Prompt.Template, "{{prompt}}") {
		b.report(toml.Key{"prompt", "template"}, "put {{prompt}} where the task's prompt belongs", "{{prompt}} is missing")
	}
	b.checkServer(&c.Server, &c.Run)
	l.checkModel(b, &c.Model, &c.Server)
}

// checkVersion is false for another version's file; what else was found in it means nothing.
func (b *binder) checkVersion(v int) bool {
	if kindOf(b.tree["version"]) != "an integer" || v == 1 {
		return true
	}
	b.problems = problems{}
	b.report(toml.Key{"version"}, "write version = 1, or use the wevalr that the file was written for", "unknown version %d", v)
	return false
}

func (l Loader) checkPlugins(b *binder, c *Config) {
	first := map[string]int{}
	for i := range c.Plugins {
		p := &c.Plugins[i]
		at := toml.Key{"plugin", strconv.Itoa(i)}
		l.checkSource(b, at, p)
		if p.Name != "" {
			if j, taken := first[p.Name]; taken {
				b.report(child(at, "name"), "give each [[plugin]] a name of its own; two may have the same source",
					"%q is already the name of %s", p.Name, b.place(toml.Key{"plugin", strconv.Itoa(j)}))
			} else {
				first[p.Name] = i
			}
		}
		for _, name := range sorted(p.Grant.FS) {
			key := append(child(at, "grant"), "fs", name)
			if !isName(name) {
				b.report(key, "use the name that the plugin's manifest asks for, for example fs.dataset", "malformed name %s", quote(clip(name)))
			}
			b.checkDir(key, p.Grant.FS[name])
		}
	}
}

func (l Loader) checkSource(b *binder, at toml.Key, p *Plugin) {
	ok := false
	if p.Source != "" {
		fi, err := os.Stat(p.Source)
		ok = err == nil
		switch {
		case err != nil:
			b.report(child(at, "source"), "a .wasm file or a source directory, relative to the eval file", "%s is not there", quote(p.Source))
		case !fi.IsDir() && !strings.HasSuffix(p.Source, ".wasm"):
			b.report(child(at, "source"), "build it with `wevalr plugin build`, or name its directory", "%s is neither a .wasm file nor a directory", quote(p.Source))
			ok = false
		}
	}
	if b.given("plugin", at[1], "name") {
		return
	}
	if l.ManifestName == nil {
		b.report(child(at, "name"), "add name = \"…\" to this [[plugin]]", "missing")
		return
	}
	if !ok {
		return
	}
	name, err := l.ManifestName(p.Source)
	switch {
	case err != nil:
		b.report(child(at, "name"), "add name = \"…\" to this [[plugin]]", "missing, and not to be had from the plugin: %v", err)
	case !isName(name):
		b.report(child(at, "name"), "add name = \"…\" to this [[plugin]]", "missing, and the manifest's is malformed: %s", quote(clip(name)))
	}
	p.Name = name
}

// checkDir reports a path that is no directory.
func (b *binder) checkDir(key toml.Key, path string) {
	const hint = "an existing directory, relative to the eval file"
	if path == "" {
		b.report(key, hint, "empty")
		return
	}
	switch fi, err := os.Stat(path); {
	case err != nil:
		b.report(key, hint, "%s is not there", quote(path))
	case !fi.IsDir():
		b.report(key, hint, "%s is not a directory", quote(path))
	}
}

// checkRefs checks everything that names a [[plugin]].
func (b *binder) checkRefs(c *Config) {
	var names []string
	for i := range c.Plugins {
		if c.Plugins[i].Name != "" {
			names = append(names, c.Plugins[i].Name)
		}
	}
	ref := func(key toml.Key, name string) {
		if name == "" || c.Plugin(name) != nil {
			return
		}
		hint := "there is no [[plugin]] at all; add one with name = " + quote(clip(name))
		if len(names) > 0 {
			hint = "those that exist: " + strings.Join(names, ", ")
		}
		if n := nearest(name, names); n != "" {
			hint = fmt.Sprintf("did you mean %q? %s", n, hint)
		}
		b.report(key, hint, "no [[plugin]] is named %s", quote(clip(name)))
	}
	ref(toml.Key{"tasks", "plugin"}, c.Tasks.Plugin)
	ref(toml.Key{"rollout", "plugin"}, c.Rollout.Plugin)
	for i, s := range c.Score {
		at := toml.Key{"score", strconv.Itoa(i)}
		ref(child(at, "plugin"), s.Plugin)
		for j, o := range c.Score[:i] {
			if s.Plugin != "" && o.Plugin == s.Plugin && (o.Scorer == s.Scorer || o.Scorer == "" || s.Scorer == "") {
				b.report(at, "for other options, add a second [[plugin]] with the same source and a name of its own",
					"the same scorer as %s", b.place(toml.Key{"score", strconv.Itoa(j)}))
				break
			}
		}
	}
}

// place names an entry of an array of tables for a message.
func (b *binder) place(key toml.Key) string {
	if from, line := b.at(key); from == "" {
		return fmt.Sprintf("the [[%s]] in line %d", key[0], line)
	}
	return key.String()
}
