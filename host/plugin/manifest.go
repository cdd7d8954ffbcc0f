package plugin

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/wevalr/wevalr/plugins/abi"
)

// ManifestVersion is the only manifest version that this host reads.
const ManifestVersion = 1

// maxManifest bounds a manifest, in bytes: the TOML decoder recurses as deep as its input nests.
const maxManifest = 64 << 10

// Manifest is plugin.toml: what a plugin is, provides and asks for. It travels inside the module as
// custom section wevalr.manifest.
type Manifest struct {
	Format   int      `toml:"manifest"`
	Name     string   `toml:"name"`
	Version  string   `toml:"version"`
	Provides []string `toml:"provides"`
	Requires []string `toml:"requires,omitempty"`
	Encoding string   `toml:"encoding"`
	Assets   []string `toml:"assets,omitempty"`

	Rollout      *RolloutSection `toml:"rollout,omitempty"`
	Capabilities Capabilities    `toml:"capabilities"`
	Limits       ManifestLimits  `toml:"limits"`
	Scorers      []Scorer        `toml:"scorer,omitempty"`
	Options      []Option        `toml:"option,omitempty"`
}

// RolloutSection says which parts of an episode env_take gives.
type RolloutSection struct {
	View []string `toml:"view,omitempty"`
}

// Kinds of scorers.
const (
	KindRollout = "rollout" // one (task, episode): op 4
	KindGroup   = "group"   // all rollouts of a task: op 5
	KindDriver  = "driver"  // comes back from op 3
)

// Scorer is one number that a plugin computes.
type Scorer struct {
	Name string `toml:"name"`
	Kind string `toml:"kind"`
	// Range is [least, greatest]; empty = any finite number.
	Range          []float64 `toml:"range,omitempty"`
	Binary         bool      `toml:"binary,omitempty"`
	HigherIsBetter *bool     `toml:"higher_is_better,omitempty"` // nil = true
	View           []string  `toml:"view,omitempty"`             // nil = abi.DefaultViews
}

// Capabilities are a plugin's requests. A nil pointer is not requested.
type Capabilities struct {
	Env     *EnvCapability         `toml:"env,omitempty"`
	TaskEnv *KeysCapability        `toml:"task_env,omitempty"`
	FS      map[string]*Capability `toml:"fs,omitempty"`
	Vars    *NamesCapability       `toml:"vars,omitempty"`
	Clock   *Capability            `toml:"clock,omitempty"`
	Random  *Capability            `toml:"random,omitempty"`
}

// Capability is a request without parameters.
type Capability struct {
	Optional bool   `toml:"optional,omitempty"`
	Why      string `toml:"why,omitempty"`
}

// EnvCapability asks to drive rollouts.
type EnvCapability struct {
	Methods  []string `toml:"methods,omitempty"`
	Sampling []string `toml:"sampling,omitempty"`
	Optional bool     `toml:"optional,omitempty"`
	Why      string   `toml:"why,omitempty"`
}

// KeysCapability asks for task data keys that steer the server's machine.
type KeysCapability struct {
	Keys     []string `toml:"keys"`
	Optional bool     `toml:"optional,omitempty"`
	Why      string   `toml:"why,omitempty"`
}

// NamesCapability asks for environment variables by name.
type NamesCapability struct {
	Names    []string `toml:"names"`
	Optional bool     `toml:"optional,omitempty"`
	Why      string   `toml:"why,omitempty"`
}

// Values of [limits] isolation, which no longer say anything: every scoring call starts from the state
// that init left. They are read so that manifests of before stay valid.
const (
	IsolationReuse = "reuse"
	IsolationFresh = "fresh"
)

// ManifestLimits are what a plugin says it needs; the operator caps them. Zero = the default.
type ManifestLimits struct {
	MemoryMiB int    `toml:"memory_mib,omitempty"`
	Fuel      string `toml:"fuel,omitempty"` // a call: "2G", "500M", "100K"
	Isolation string `toml:"isolation,omitempty"`
}

// Option types.
const (
	TypeString  = "string"
	TypeInt     = "int"
	TypeFloat   = "float"
	TypeBool    = "bool"
	TypeStrings = "strings"
)

// Option is a typed parameter. Without a default it must be set.
type Option struct {
	Name    string `toml:"name"`
	Type    string `toml:"type"`
	Default any    `toml:"default,omitempty"`
	Help    string `toml:"help,omitempty"`
}

// ParseManifest decodes and checks a manifest; file names it in errors.
//
// # Errors
//
// *ManifestError with every problem at once; for an unknown manifest version with that one only.
func ParseManifest(file string, b []byte) (*Manifest, error) {
	if len(b) > maxManifest {
		return nil, &ManifestError{File: file, Problems: []string{fmt.Sprintf(
			"has %d bytes, at most %d are read", len(b), maxManifest)}}
	}
	m := &Manifest{}
	md, err := toml.Decode(string(b), m)
	if err != nil {
		return nil, &ManifestError{File: file, Problems: []string{scrub(err.Error())}}
	}
	if m.Format != ManifestVersion {
		return nil, &ManifestError{File: file, Problems: []string{fmt.Sprintf(
			"manifest = %d is unknown, this wevalr reads manifest = %d", m.Format, ManifestVersion)}}
	}
	var problems []string
	for _, k := range md.Undecoded() {
		problems = append(problems, "unknown key "+scrub(k.String()))
	}
	m.applyDefaults()
	if problems = append(problems, m.problems()...); len(problems) > 0 {
		return nil, &ManifestError{File: file, Problems: problems}
	}
	return m, nil
}

func (m *Manifest) applyDefaults() {
	m.Encoding = orElse(m.Encoding, abi.EncodingMsgpack)
	for i := range m.Scorers {
		m.Scorers[i].Kind = orElse(m.Scorers[i].Kind, KindRollout)
	}
}

// Canonical is the manifest as TOML in one fixed form: equal manifests give equal bytes.
func (m *Manifest) Canonical() ([]byte, error) {
	var b bytes.Buffer
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return b.Bytes(), nil
}

// RolloutView is what env_take gives.
func (m *Manifest) RolloutView() []string {
	if m.Rollout == nil || len(m.Rollout.View) == 0 {
		return abi.DefaultViews()
	}
	return slices.Clone(m.Rollout.View)
}

// Views is what this scorer reads of an episode.
func (s *Scorer) Views() []string {
	if len(s.View) == 0 {
		return abi.DefaultViews()
	}
	return slices.Clone(s.View)
}

// Better reports whether a higher score is a better one.
func (s *Scorer) Better() bool { return s.HigherIsBetter == nil || *s.HigherIsBetter }

// scorer finds a scorer by name, nil if there is none.
func (m *Manifest) scorer(name string) *Scorer {
	for i := range m.Scorers {
		if m.Scorers[i].Name == name {
			return &m.Scorers[i]
		}
	}
	return nil
}

// FormatFuel writes a number of instructions as ParseFuel reads it.
func FormatFuel(n uint64) string {
	for _, u := range []struct {
		letter string
		size   uint64
	}{{"G", 1e9}, {"M", 1e6}, {"K", 1e3}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatUint(n/u.size, 10) + u.letter
		}
	}
	return strconv.FormatUint(n, 10)
}

// ParseFuel reads "2G", "500M", "100K" or a plain number; "" is 0, the default.
func ParseFuel(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	num, unit := s, uint64(1)
	if i := strings.IndexByte("KMG", s[len(s)-1]); i >= 0 {
		num = s[:len(s)-1]
		unit = []uint64{1e3, 1e6, 1e9}[i]
	}
	n, err := strconv.ParseUint(num, 10, 64)
	if err != nil || n == 0 || n > 1e18/unit {
		return 0, fmt.Errorf("fuel %q: want a number with K, M or G, such as \"2G\"", s)
	}
	return n * unit, nil
}
