package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// identity is what "the same scorer" means, as digests.
type identity struct{ options, grants string }

func newIdentity(p *Plugin, trees map[string]string) identity {
	g := p.grants
	vars := map[string]string{}
	for k, v := range p.vars {
		vars[k] = digest(v)
	}
	return identity{
		options: digest(p.options),
		grants: digest(map[string]any{
			"env": g.Env, "fs": trees, "vars": vars, "clock": g.Clock, "random": g.Random, "task_env": g.TaskEnv,
		}),
	}
}

// digest is the sha256 of v as JSON, whose map keys are sorted.
func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // options and grants are made of strings, numbers and lists
		b = fmt.Appendf(nil, "%#v", v)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// OptionsDigest is the sha256 of the options in effect.
func (p *Plugin) OptionsDigest() string { return p.identity.options }

// GrantsDigest is the sha256 of the grants in effect: granted folders count by content, variables
// by value.
func (p *Plugin) GrantsDigest() string { return p.identity.grants }

// ScorerIdentity is equal for two scorers when they must give the same scores: module, ABI, way of
// metering, options, grants, limits, and the scorer's name. Time limits are not in it: they only stop
// runaways, and never change a score.
func (p *Plugin) ScorerIdentity(scorer string) string {
	return "sha256:" + digest([]any{
		scorer, p.sha256, p.abi, meterVersion(), p.identity.options, p.identity.grants,
		p.limits.MemoryMiB, p.limits.Fuel,
	})
}
