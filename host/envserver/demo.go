package envserver

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// demo answers "What is A + B?" (also − and ×), wrongly in a share of the rollouts.
type demo struct {
	wrongRate float64
	latency   time.Duration
	task      *regexp.Regexp
}

// newDemo reads wrong_rate (0 to 1) and latency (a duration, or seconds).
func newDemo(options map[string]any) (*demo, error) {
	d := &demo{task: regexp.MustCompile(`([-−]?\d{1,100})\s*([-+*x×·−–])\s*([-−]?\d{1,100})`)}
	if v, ok := options["wrong_rate"]; ok {
		f, ok := number(v)
		if !ok || f < 0 || f > 1 || f != f {
			return nil, fmt.Errorf("option wrong_rate: a number from 0 to 1, got %v", v)
		}
		d.wrongRate = f
	}
	v, ok := options["latency"]
	if !ok {
		return d, nil
	}
	var err error
	switch l := v.(type) {
	case time.Duration:
		d.latency = l
	case string:
		d.latency, err = time.ParseDuration(l)
	default:
		f, ok := number(v)
		if !ok || f > 1e6 || f != f {
			err = fmt.Errorf("no number")
		}
		d.latency = time.Duration(f * float64(time.Second))
	}
	if err != nil || d.latency < 0 {
		return nil, fmt.Errorf("option latency: a duration such as \"50ms\", got %v", v)
	}
	return d, nil
}

func (d *demo) complete(ctx context.Context, c *call) (completion, int, error) {
	if err := pause(ctx, d.latency); err != nil {
		return completion{}, 1, err
	}
	prompt := lastUser(c.messages)
	sum, ok := d.solve(prompt)
	if !ok {
		return answer("I can only add, subtract and multiply two numbers."), 1, nil
	}
	if share, off := draw(c, prompt); share < d.wrongRate {
		sum.Add(sum, big.NewInt(off))
	}
	return answer(sum.String()), 1, nil
}

// draw turns the rollout's identity into a number in [0, 1) and an offset that makes an answer
// wrong. The seed alone would do if every peer sent one; key, index and prompt keep the draws of
// one run apart when it does not.
func draw(c *call, prompt string) (share float64, off int64) {
	b := make([]byte, 0, 128)
	if t := c.tag; t != nil {
		b = binary.BigEndian.AppendUint64(b, uint64(t.Seed))
		b = binary.BigEndian.AppendUint64(b, uint64(t.Index))
		b = append(b, t.Key...)
	} else {
		b = fmt.Appendf(b, "%v\x00%s", c.sampling["seed"], prompt)
	}
	h := sha256.Sum256(b)
	share = float64(binary.BigEndian.Uint64(h[:])>>11) / (1 << 53)
	off = 1 + int64(h[8]%9)
	if h[9]&1 == 1 {
		off = -off
	}
	return share, off
}

// solve works out the last "A op B" of text.
func (d *demo) solve(text string) (*big.Int, bool) {
	all := d.task.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return nil, false
	}
	last := all[len(all)-1]
	a, okA := integer(last[1])
	b, okB := integer(last[3])
	if !okA || !okB {
		return nil, false
	}
	switch last[2] {
	case "+":
		return a.Add(a, b), true
	case "*", "×", "x", "·":
		return a.Mul(a, b), true
	default:
		return a.Sub(a, b), true
	}
}

// integer reads a whole number, its sign also as U+2212.
func integer(s string) (*big.Int, bool) {
	return new(big.Int).SetString(strings.Replace(s, "−", "-", 1), 10)
}

// number reads what TOML and msgpack use for numbers.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}
