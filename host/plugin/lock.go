package plugin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/google/renameio/v2"

	"github.com/wevalr/wevalr/host/failure"
)

// LockFile stands beside the eval file whose plugins it pins.
const LockFile = "wevalr.lock"

// lockVersion is the only version of the file that this host reads.
const lockVersion = 1

// Lock is wevalr.lock: the plugins of one eval file as their operator accepted them.
type Lock struct {
	Format  int      `toml:"lock"`
	Plugins []Locked `toml:"plugin"`
}

// Locked pins one [[plugin]] of the eval file.
type Locked struct {
	Name   string `toml:"name" json:"name"`     // the alias
	Source string `toml:"source" json:"source"` // as seen from the lock's folder; the bytes bind, not the place
	SHA256 string `toml:"sha256" json:"sha256"` // of the module
	Size   int    `toml:"size" json:"size"`     // of the module, in bytes
	ABI    string `toml:"abi" json:"abi"`
	// Tree is the sha256 over a source folder's files, Go the toolchain that built the module: SHA256
	// binds where that is the same one, else Tree does. Both "" for a .wasm file.
	Tree string `toml:"tree,omitempty" json:"tree,omitempty"`
	Go   string `toml:"go,omitempty" json:"go,omitempty"`
	// Requests are the capabilities that the manifest asks for, sorted: "clock", "fs.NAME",
	// "vars=NAME", "env", "env.sampling=KEY", …
	Requests []string `toml:"requests" json:"requests"`
}

// LockError lists every plugin that is not the one that was locked.
type LockError struct {
	File     string
	Problems []string
}

func (e *LockError) Error() string { return join(e.File, "lock", strings.Join(e.Problems, "\n")) }

// Failure is config/lock.
func (e *LockError) Failure() *failure.Failure {
	return failure.New(failure.Config, "lock", "%s", e.Error())
}

// ReadLock reads a lock file. One that is not there is fs.ErrNotExist.
func ReadLock(file string) (*Lock, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l := &Lock{}
	md, err := toml.Decode(string(b), l)
	if err != nil {
		return nil, &LockError{File: file, Problems: []string{scrub(err.Error())}}
	}
	if l.Format != lockVersion {
		return nil, &LockError{File: file, Problems: []string{fmt.Sprintf(
			"lock = %d is unknown, this wevalr reads lock = %d: write it again with wevalr plugin lock", l.Format, lockVersion)}}
	}
	var problems []string
	for _, k := range md.Undecoded() {
		problems = append(problems, "unknown key "+scrub(k.String()))
	}
	seen := map[string]bool{}
	for _, p := range l.Plugins {
		if seen[p.Name] {
			problems = append(problems, fmt.Sprintf("plugin %q stands there twice", scrub(p.Name)))
		}
		seen[p.Name] = true
	}
	if len(problems) > 0 {
		return nil, &LockError{File: file, Problems: problems}
	}
	return l, nil
}

// Write replaces the file atomically; equal plugins give equal bytes.
func (l *Lock) Write(file string) error {
	var b bytes.Buffer
	b.WriteString("# Written by wevalr plugin lock; commit it. wevalr run refuses plugins that differ from it.\n")
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	out := Lock{Format: lockVersion, Plugins: slices.Clone(l.Plugins)}
	slices.SortFunc(out.Plugins, func(a, b Locked) int { return strings.Compare(a.Name, b.Name) })
	if err := enc.Encode(out); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := renameio.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// Find gives the entry of an alias, nil if there is none.
func (l *Lock) Find(alias string) *Locked {
	for i := range l.Plugins {
		if l.Plugins[i].Name == alias {
			return &l.Plugins[i]
		}
	}
	return nil
}

// Lock describes a plugin as it is now: a .wasm file is read, a source folder is built. No guest code
// runs. folder is the one of the lock file.
func (b *Builder) Lock(ctx context.Context, folder, alias, source string) (Locked, error) {
	out := Locked{Name: alias, Source: source}
	if rel, err := filepath.Rel(folder, source); err == nil {
		out.Source = filepath.ToSlash(rel)
	}
	st, err := os.Stat(source)
	if err != nil {
		return out, &ABIError{File: source, Step: "read", Msg: "cannot be read", Cause: err}
	}
	var code []byte
	if st.IsDir() {
		built, err := b.Build(ctx, source)
		if err != nil {
			return out, err
		}
		code, out.Go = built.Module, built.GoVersion
		if out.Tree, err = b.tree(ctx, source); err != nil {
			return out, err
		}
	} else if code, err = readModule(source); err != nil {
		return out, &ABIError{File: source, Step: "read", Msg: "cannot be read", Cause: err}
	}
	in, err := Inspect(source, code)
	if err != nil {
		return out, err
	}
	out.SHA256, out.Size, out.ABI = in.SHA256, in.Size, in.ABI
	out.Requests = in.Manifest.Capabilities.Requests()
	return out, nil
}

// NewLocked is [Builder.Lock] with the cache in the user's cache folder.
func NewLocked(ctx context.Context, folder, alias, source string) (Locked, error) {
	cache, err := defaultCacheDir()
	if err != nil {
		return Locked{}, err
	}
	return (&Builder{CacheDir: cache}).Lock(ctx, folder, alias, source)
}

// tree is the sha256 over what a source folder is built from, whatever the toolchain.
func (b *Builder) tree(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", &BuildError{Dir: dir, Step: "read", Cause: err}
	}
	parts, err := readParts(dir)
	if err != nil {
		return "", err
	}
	tool, err := findGo(dir)
	if err != nil {
		return "", err
	}
	src := b.readIndex(dir, tool)
	if src == nil {
		if src, err = tool.sources(ctx, dir); err != nil {
			return "", err
		}
	}
	return digest([]any{src.digest, string(parts.section), digest(parts.assets)}), nil
}

// Check compares loaded plugins with the lock: what was loaded, not what lies on the disk by now.
// file is the lock's, for errors; remedy the command that writes it anew.
//
// # Errors
//
// *LockError with every difference.
func (l *Lock) Check(ctx context.Context, file, remedy string, plugins []*Plugin) error {
	var problems []string
	for _, p := range plugins {
		if msg := l.differs(ctx, p); msg != "" && !slices.Contains(problems, msg) {
			problems = append(problems, msg)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &LockError{File: file, Problems: append(problems, "look at it with wevalr plugin inspect; if it is meant to be so: "+remedy)}
}

// differs says what is not as it was locked, "" for nothing.
func (l *Lock) differs(ctx context.Context, p *Plugin) string {
	was := l.Find(p.spec.Alias)
	if was == nil {
		return fmt.Sprintf("plugin %s is not in the lock", p.spec.Alias)
	}
	if p.sha256 == was.SHA256 {
		return ""
	}
	now := Locked{Name: p.spec.Alias, SHA256: p.sha256, Requests: p.manifest.Capabilities.Requests()}
	if st, err := os.Stat(p.spec.Source); was.Tree != "" && err == nil && st.IsDir() {
		src, err := p.engine.builder.Lock(ctx, ".", p.spec.Alias, p.spec.Source)
		if err != nil {
			return fmt.Sprintf("plugin %s: %s", p.spec.Alias, scrub(err.Error()))
		}
		if src.SHA256 == p.sha256 && src.Go != was.Go && src.Tree == was.Tree {
			return "" // another Go version makes other bytes of the same sources
		}
	}
	if more := Widened(*was, now); len(more) > 0 {
		return fmt.Sprintf("plugin %s asks for more than was accepted: %s", p.spec.Alias, strings.Join(more, ", "))
	}
	return fmt.Sprintf("plugin %s has changed: sha256 is %s, locked is %s", p.spec.Alias, p.sha256, scrub(was.SHA256))
}

// Widened lists the requests that the locked plugin did not have.
func Widened(was, now Locked) []string {
	var more []string
	for _, r := range now.Requests {
		if !slices.Contains(was.Requests, r) {
			more = append(more, r)
		}
	}
	return more
}

// Requests lists what is asked for, optional or not, one item for each thing that can be granted.
func (c *Capabilities) Requests() []string {
	out := []string{}
	each := func(prefix string, names []string) {
		for _, n := range names {
			out = append(out, prefix+n)
		}
	}
	if c.Env != nil {
		out = append(out, "env")
		each("env.sampling=", c.Env.Sampling)
	}
	if c.TaskEnv != nil {
		each("task_env=", c.TaskEnv.Keys)
	}
	each("fs.", sortedKeys(c.FS))
	if c.Vars != nil {
		each("vars=", c.Vars.Names)
	}
	if c.Clock != nil {
		out = append(out, "clock")
	}
	if c.Random != nil {
		out = append(out, "random")
	}
	slices.Sort(out)
	return slices.Compact(out)
}
