package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Result is what a scoring call gives.
type Result struct {
	Scores []abi.Score
	Fuel   uint64        // instructions; equal for equal requests
	Took   time.Duration // time on core
}

// Score runs op 4: one (task, episode). req.Episode must hold only what the scorer's view names.
func (p *Plugin) Score(ctx context.Context, req abi.ScoreRequest) (Result, error) {
	return p.score(ctx, abi.OpScore, KindRollout, req.Scorer, req.Seed, req)
}

// ScoreGroup runs op 5: all finished rollouts of one task.
func (p *Plugin) ScoreGroup(ctx context.Context, req abi.ScoreGroupRequest) (Result, error) {
	return p.score(ctx, abi.OpScoreGroup, KindGroup, req.Scorer, req.Seed, req)
}

func (p *Plugin) score(ctx context.Context, op abi.Op, kind, scorer string, seed int64, req any) (Result, error) {
	s := p.manifest.scorer(scorer)
	if s == nil || s.Kind != kind {
		return Result{}, p.badResponse(op, "the plugin has no scorer %q of kind %s", scorer, kind)
	}
	var res Result
	err := p.withScorer(ctx, func(in *instance) error {
		var resp abi.ScoreResponse
		var err error
		c := p.newCall(op, seed)
		res.Took, err = p.ask(ctx, in, c, req, &resp)
		res.Fuel = c.tank.used()
		if err != nil {
			return err
		}
		res.Scores = resp.Scores
		return p.checkScores(op, s, resp.Scores)
	})
	if err != nil {
		return Result{Took: res.Took, Fuel: res.Fuel}, err
	}
	return res, nil
}

func (p *Plugin) badResponse(op abi.Op, format string, args ...any) error {
	return &ResponseError{Alias: p.spec.Alias, Op: opName(op), Msg: p.clean(fmt.Sprintf(format, args...))}
}

// scoreNameForm is what validScoreName accepts, for a person.
const scoreNameForm = "[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}"

func validScoreName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		case i > 0 && strings.IndexByte(".:/-", c) >= 0:
		default:
			return false
		}
	}
	return len(s) > 0 && len(s) <= 100
}

// checkScores holds a scorer's answer against its declaration: 1 to [abi.MaxScores] scores, each name once;
// it names unnamed ones and cleans texts.
func (p *Plugin) checkScores(op abi.Op, s *Scorer, scores []abi.Score) error {
	if len(scores) == 0 {
		return p.badResponse(op, "scorer %s gave no score (a skipped one has the value null)", s.Name)
	}
	if len(scores) > abi.MaxScores {
		return p.badResponse(op, "scorer %s gave %d scores, want %d at most", s.Name, len(scores), abi.MaxScores)
	}
	seen := map[string]bool{}
	for i := range scores {
		sc := &scores[i]
		sc.Name = orElse(sc.Name, s.Name)
		if !validScoreName(sc.Name) {
			return p.badResponse(op, "bad score name %q, want %s", cut(sc.Name, 120), scoreNameForm)
		}
		if seen[sc.Name] {
			return p.badResponse(op, "score %s given twice", sc.Name)
		}
		seen[sc.Name] = true
		if err := p.checkScore(op, s, sc); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plugin) checkScore(op abi.Op, s *Scorer, sc *abi.Score) error {
	if v := sc.Value; v != nil {
		switch {
		case math.IsNaN(*v) || math.IsInf(*v, 0):
			return p.badResponse(op, "score %s is %v, which is not a number", sc.Name, *v)
		case s.Binary && *v != 0 && *v != 1:
			return p.badResponse(op, "score %s is %v, but its scorer is binary", sc.Name, *v)
		case len(s.Range) == 2 && (*v < s.Range[0] || *v > s.Range[1]):
			return p.badResponse(op, "score %s is %v, outside of its range [%v, %v]", sc.Name, *v, s.Range[0], s.Range[1])
		}
	}
	for _, text := range []*string{&sc.Label, &sc.Explanation, &sc.Answer} {
		*text = p.clean(*text)
	}
	if err := plainMap(sc.Metadata); err != nil {
		return p.badResponse(op, "score %s: metadata: %v", sc.Name, err)
	}
	return nil
}

func slogLevel(level int32) (slog.Level, bool) {
	switch level {
	case abi.LevelDebug:
		return slog.LevelDebug, true
	case abi.LevelInfo:
		return slog.LevelInfo, true
	case abi.LevelWarn:
		return slog.LevelWarn, true
	case abi.LevelError:
		return slog.LevelError, true
	}
	return 0, false
}
