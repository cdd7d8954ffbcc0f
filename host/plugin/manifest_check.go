package plugin

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
)

// checker collects problems, so that an author sees all of them at once.
type checker struct{ problems []string }

func (c *checker) addf(format string, args ...any) {
	c.problems = append(c.problems, scrub(fmt.Sprintf(format, args...)))
}

// oneOf checks each value against the allowed ones and against repetition.
func (c *checker) oneOf(what string, values, allowed []string) {
	seen := map[string]bool{}
	for _, v := range values {
		if !slices.Contains(allowed, v) {
			c.addf("%s: unknown %q, there are: %s", what, v, strings.Join(allowed, ", "))
		}
		if seen[v] {
			c.addf("%s: %q given twice", what, v)
		}
		seen[v] = true
	}
}

// names checks each value against a pattern and against repetition.
func (c *checker) names(what string, values []string, form *regexp.Regexp) {
	seen := map[string]bool{}
	for _, v := range values {
		if !form.MatchString(v) {
			c.addf("%s: bad name %q, want %s", what, v, form)
		}
		if seen[v] {
			c.addf("%s: %q given twice", what, v)
		}
		seen[v] = true
	}
}

// The forms of names. They go into paths, TOML keys and summary keys.
func pluginName() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{1,62}$`) }
func plainName() *regexp.Regexp  { return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`) }
func varName() *regexp.Regexp    { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`) }
func version() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]{1,60})?$`)
}

// TaskEnvKeys are the keys of a task's data that steer the server's machine: they need task_env.
func TaskEnvKeys() []string {
	return []string{
		"image", "workdir", "network_allow", "network_block", "artifacts", "resources", "skills", "agent_user",
	}
}

func (m *Manifest) problems() []string {
	c := &checker{}
	if !pluginName().MatchString(m.Name) {
		c.addf("name: %q does not match %s", m.Name, pluginName())
	}
	if !version().MatchString(m.Version) {
		c.addf("version: %q is not of the form 1.2.3", m.Version)
	}
	if len(m.Provides) == 0 {
		c.addf("provides: empty, a plugin provides something")
	}
	c.oneOf("provides", m.Provides, []string{
		abi.ProvidesTask, abi.ProvidesRollout, abi.ProvidesScorer, abi.ProvidesGroupScorer,
	})
	for _, r := range m.Requires {
		c.addf("requires: this wevalr has no feature %q", r)
	}
	c.oneOf("encoding", []string{m.Encoding}, []string{abi.EncodingMsgpack, abi.EncodingJSON})
	for _, p := range m.Assets {
		if msg := checkPattern(p); msg != "" {
			c.addf("assets: %q: %s", p, msg)
		}
	}
	if m.Rollout != nil {
		c.oneOf("rollout.view", m.Rollout.View, abi.Views())
	}
	m.scorerProblems(c)
	m.capabilityProblems(c)
	m.limitProblems(c)
	m.optionProblems(c)
	return c.problems
}

func (m *Manifest) scorerProblems(c *checker) {
	role := map[string]string{
		KindRollout: abi.ProvidesScorer, KindGroup: abi.ProvidesGroupScorer, KindDriver: abi.ProvidesRollout,
	}
	have := map[string]bool{}
	names := make([]string, 0, len(m.Scorers))
	for i := range m.Scorers {
		s := &m.Scorers[i]
		names = append(names, s.Name)
		what := "scorer " + s.Name
		c.oneOf(what+": kind", []string{s.Kind}, []string{KindRollout, KindGroup, KindDriver})
		have[role[s.Kind]] = true
		if s.Kind == KindDriver {
			have[abi.ProvidesScorer] = true
		}
		if need := role[s.Kind]; need != "" && !slices.Contains(m.Provides, need) {
			c.addf("%s: kind %q needs provides = [%q]", what, s.Kind, need)
		}
		c.oneOf(what+": view", s.View, abi.Views())
		rangeProblems(c, what, s)
	}
	c.names("scorer", names, plainName())
	if len(names) > abi.MaxScores {
		c.addf("%d scorers, %d at most", len(names), abi.MaxScores)
	}
	for _, p := range []string{abi.ProvidesScorer, abi.ProvidesGroupScorer} {
		if slices.Contains(m.Provides, p) && !have[p] {
			c.addf("provides %q, but no [[scorer]] is of that kind", p)
		}
	}
}

func rangeProblems(c *checker, what string, s *Scorer) {
	if len(s.Range) != 0 && len(s.Range) != 2 {
		c.addf("%s: range has %d numbers, want two", what, len(s.Range))
		return
	}
	if len(s.Range) == 2 && !(s.Range[0] < s.Range[1]) {
		c.addf("%s: range [%g, %g] is empty", what, s.Range[0], s.Range[1])
	}
	if slices.ContainsFunc(s.Range, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		c.addf("%s: range is not finite; leave it out for any finite number", what)
	}
	if s.Binary && len(s.Range) == 2 && (s.Range[0] > 0 || s.Range[1] < 1) {
		c.addf("%s: binary, but its range does not hold 0 and 1", what)
	}
}

func (m *Manifest) capabilityProblems(c *checker) {
	q := &m.Capabilities
	if q.Env != nil {
		c.oneOf("capabilities.env.methods", q.Env.Methods, []string{"run"})
		c.names("capabilities.env.sampling", q.Env.Sampling, plainName())
		if !slices.Contains(m.Provides, abi.ProvidesRollout) {
			c.addf("capabilities.env: is only there in a rollout, which needs provides = [%q]", abi.ProvidesRollout)
		}
	}
	if q.TaskEnv != nil {
		c.oneOf("capabilities.task_env.keys", q.TaskEnv.Keys, TaskEnvKeys())
		if len(q.TaskEnv.Keys) == 0 {
			c.addf("capabilities.task_env: keys is empty")
		}
	}
	if q.Vars != nil {
		c.names("capabilities.vars.names", q.Vars.Names, varName())
		if len(q.Vars.Names) == 0 {
			c.addf("capabilities.vars: names is empty")
		}
	}
	c.names("capabilities.fs", sortedKeys(q.FS), plainName())
}

func (m *Manifest) limitProblems(c *checker) {
	if m.Limits.MemoryMiB < 0 || m.Limits.MemoryMiB > 4096 {
		c.addf("limits.memory_mib: %d is not between 1 and 4096", m.Limits.MemoryMiB)
	}
	if _, err := ParseFuel(m.Limits.Fuel); err != nil {
		c.addf("limits.fuel: %v", err)
	}
	c.oneOf("limits.isolation", []string{orElse(m.Limits.Isolation, IsolationReuse)},
		[]string{IsolationReuse, IsolationFresh})
}

func (m *Manifest) optionProblems(c *checker) {
	names := make([]string, 0, len(m.Options))
	for i := range m.Options {
		o := &m.Options[i]
		names = append(names, o.Name)
		types := []string{TypeString, TypeInt, TypeFloat, TypeBool, TypeStrings}
		if !slices.Contains(types, o.Type) {
			c.addf("option %s: unknown type %q, there are: %s", o.Name, o.Type, strings.Join(types, ", "))
			continue
		}
		if o.Default == nil {
			continue
		}
		v, err := o.typed(o.Default)
		if err != nil {
			c.addf("option %s: default: %v", o.Name, err)
			continue
		}
		o.Default = v
	}
	c.names("option", names, plainName())
}
