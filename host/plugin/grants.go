package plugin

import (
	"fmt"
	"slices"
	"strings"
)

// Grants are what the operator lets a plugin do. The zero value grants nothing.
type Grants struct {
	Env     *EnvGrant         `json:"env,omitempty"`
	FS      map[string]string `json:"fs,omitempty"`   // logical name → absolute host folder
	Vars    []string          `json:"vars,omitempty"` // names of environment variables
	Clock   bool              `json:"clock,omitempty"`
	Random  bool              `json:"random,omitempty"`
	TaskEnv []string          `json:"task_env,omitempty"`
}

// EnvGrant lets a plugin drive rollouts and set the named sampling keys; no key = none.
type EnvGrant struct {
	Sampling []string `json:"sampling,omitempty"`
}

// matcher compares requests with grants, one capability after the other; each has its own text.
type matcher struct{ problems []GrantProblem }

func (m *matcher) refuse(capability, add, format string, args ...any) {
	m.problems = append(m.problems, GrantProblem{capability, scrub(fmt.Sprintf(format, args...)), add})
}

// effective is requested ∩ granted.
//
// # Errors
//
// *GrantError with every problem: granted but not requested; requested, not optional, not granted.
func effective(alias string, q *Capabilities, g Grants) (Grants, error) {
	m := &matcher{}
	var out Grants
	out.Env = m.env(q.Env, g.Env)
	out.FS = m.fs(q.FS, g.FS)
	out.Vars = m.list("vars", "reads environment variables", namesOf(q.Vars), g.Vars)
	out.TaskEnv = m.list("task_env", "puts keys that steer the server's machine into tasks", keysOf(q.TaskEnv), g.TaskEnv)
	out.Clock = m.flag("clock", "reads the real clock", q.Clock, g.Clock)
	out.Random = m.flag("random", "reads real entropy", q.Random, g.Random)
	if len(m.problems) > 0 {
		return Grants{}, &GrantError{Alias: alias, Problems: m.problems}
	}
	return out, nil
}

func (m *matcher) env(q *EnvCapability, g *EnvGrant) *EnvGrant {
	if g == nil {
		if q != nil && !q.Optional {
			m.refuse("env", "grant = { env = "+envLine(q.Sampling)+" }", "the plugin drives rollouts and is not allowed to%s", why(q.Why))
		}
		return nil
	}
	if q == nil {
		m.refuse("env", "", "granted, but the plugin does not ask for it: remove the grant")
		return nil
	}
	keys := m.list("env.sampling", "sets sampling keys", &listRequest{q.Sampling, q.Optional, q.Why}, g.Sampling)
	return &EnvGrant{Sampling: keys}
}

func envLine(sampling []string) string {
	if len(sampling) == 0 {
		return "true"
	}
	return "{ sampling = " + tomlList(sampling) + " }"
}

func (m *matcher) fs(q map[string]*Capability, g map[string]string) map[string]string {
	var out map[string]string
	for _, name := range sortedKeys(q) {
		dir, granted := g[name]
		switch {
		case granted && out == nil:
			out = map[string]string{name: dir}
		case granted:
			out[name] = dir
		case !q[name].Optional:
			m.refuse("fs."+name, fmt.Sprintf("grant = { fs.%s = \"path/of/a/folder\" }", name),
				"the plugin reads a folder, and none is bound to the name%s", why(q[name].Why))
		}
	}
	for _, name := range sortedKeys(g) {
		if _, asked := q[name]; !asked {
			m.refuse("fs."+name, "", "granted, but the plugin does not ask for it: remove the grant")
		}
	}
	return out
}

func (m *matcher) flag(name, what string, q *Capability, granted bool) bool {
	switch {
	case granted && q == nil:
		m.refuse(name, "", "granted, but the plugin does not ask for it: remove the grant")
	case !granted && q != nil && !q.Optional:
		m.refuse(name, "grant = { "+name+" = true }", "the plugin %s and is not allowed to%s", what, why(q.Why))
	}
	return granted && q != nil
}

// listRequest is a request for some names of a set.
type listRequest struct {
	names    []string
	optional bool
	why      string
}

func namesOf(q *NamesCapability) *listRequest {
	if q == nil {
		return nil
	}
	return &listRequest{q.Names, q.Optional, q.Why}
}

func keysOf(q *KeysCapability) *listRequest {
	if q == nil {
		return nil
	}
	return &listRequest{q.Keys, q.Optional, q.Why}
}

func (m *matcher) list(name, what string, q *listRequest, granted []string) []string {
	if q == nil {
		if len(granted) > 0 {
			m.refuse(name, "", "granted, but the plugin does not ask for it: remove the grant")
		}
		return nil
	}
	var out, missing []string
	for _, n := range q.names {
		if slices.Contains(granted, n) {
			out = append(out, n)
		} else {
			missing = append(missing, n)
		}
	}
	for _, n := range granted {
		if !slices.Contains(q.names, n) {
			m.refuse(name, "", "%q is granted, but the plugin does not ask for it: remove it", n)
		}
	}
	if len(missing) > 0 && !q.optional {
		add := "grant = { " + name + " = " + tomlList(q.names) + " }"
		if name == "env.sampling" {
			add = "grant = { env = " + envLine(q.names) + " }"
		}
		m.refuse(name, add, "the plugin %s (%s) and is not allowed to%s", what, strings.Join(missing, ", "), why(q.why))
	}
	slices.Sort(out)
	return out
}

func why(s string) string {
	if s == "" {
		return ""
	}
	return "; it says why: " + s
}

func tomlList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
