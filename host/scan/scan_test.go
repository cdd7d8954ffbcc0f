package scan_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/scan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// episode is a message as an env-server might send it.
func episode(tb testing.TB, tokens int) []byte {
	tb.Helper()
	ids := make([]int, tokens)
	mask := make([]bool, tokens)
	lps := make([]float64, tokens)
	for i := range ids {
		ids[i], mask[i], lps[i] = i%50000, i%3 == 0, -float64(i)/7
	}
	node := map[string]any{
		"token_ids": ids, "mask": mask, "logprobs": lps, "parent": nil, "sampled": true,
		"message": map[string]any{"role": "assistant", "content": "Grüße, 世界"}, "data": []byte{1, 0xff},
	}
	b, err := msgpack.Marshal(map[string]any{"trace": "t", "nodes": []any{node}, "links": map[int]any{-7: 1, 70000: 2}})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func rep(b []byte, n int) []byte { return bytes.Repeat(b, n) }

func TestCheck_WellFormed(t *testing.T) {
	rows := map[string][]byte{
		"nil":           {0xc0},
		"empty map":     {0x80},
		"integer keys":  {0x82, 0x05, 0xc0, 0xd3, 1, 2, 3, 4, 5, 6, 7, 8, 0xc2},
		"bin not UTF-8": {0xc4, 2, 0xff, 0xfe},
		"depth 64":      append(rep([]byte{0x91}, 63), 0x90),
		"duplicate key": {0x82, 0xa1, 'a', 1, 0xa1, 'a', 2},
		"episode":       episode(t, 1000),
	}
	for name, b := range rows {
		if err := scan.Check(b, scan.Limits{}); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
	}
}

// hostile are inputs that stop or starve a plain decoder (fatal out of memory, stack overflow,
// seconds of work for a few bytes).
func hostile() map[string]struct {
	b    []byte
	rule scan.Rule
} {
	type row = struct {
		b    []byte
		rule scan.Rule
	}
	return map[string]row{
		"array32 of 4G":          {[]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, scan.Truncated},
		"map32 of 4G":            {[]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, scan.Truncated},
		"nested map32 of 1M":     {rep([]byte{0xdf, 0, 0x10, 0, 0, 0xa1, 'k'}, 50), scan.Truncated},
		"nested array16 x8000":   {append(rep([]byte{0xdc, 0xff, 0xff}, 8000), make([]byte, 67000)...), scan.Truncated},
		"nested array16, fed":    {append(rep([]byte{0xdc, 0x00, 0x02}, 8000), make([]byte, 67000)...), scan.Depth},
		"bin32 of 4G":            {[]byte{0xc6, 0xff, 0xff, 0xff, 0xff, 1}, scan.Truncated},
		"str32 of 4G":            {[]byte{0xdb, 0xff, 0xff, 0xff, 0xff, 'a'}, scan.Truncated},
		"depth 10M":              {rep([]byte{0x91}, 10_000_000), scan.Depth},
		"depth 65":               {append(rep([]byte{0x91}, 64), 0x90), scan.Depth},
		"8 MB of empty maps":     {append([]byte{0xdd, 0, 0x80, 0, 0}, rep([]byte{0x80}, 8<<20)...), scan.Containers},
		"8 MB of 1-element maps": {append([]byte{0xdd, 0, 0x2a, 0xaa, 0xaa}, rep([]byte{0x81, 1, 1}, 0x2aaaaa)...), scan.Containers},
		"ext":                    {[]byte{0xc7, 1, 5, 0}, scan.Ext},
		"fixext before a map":    {[]byte{0xd4, 5, 0, 0x80}, scan.Ext},
		"timestamp":              {[]byte{0xd6, 0xff, 0, 0, 0, 1}, scan.Ext},
		"never-used code":        {[]byte{0xc1, 0xc1, 0xc1}, scan.Code},
		"nothing":                {nil, scan.Truncated},
		"trailing":               {[]byte{0x80, 0xc0}, scan.Trailing},
		"string not UTF-8":       {[]byte{0xa2, 0xc3, 0x28}, scan.UTF8},
		"key not UTF-8":          {[]byte{0x81, 0xa1, 0xff, 1}, scan.UTF8},
		"nil key":                {[]byte{0x81, 0xc0, 1}, scan.Key},
		"bin key":                {[]byte{0x81, 0xc4, 1, 'a', 1}, scan.Key},
		"bool key":               {[]byte{0x81, 0xc3, 1}, scan.Key},
		"float key":              {[]byte{0x81, 0xca, 0, 0, 0, 0, 1}, scan.Key},
		"array key":              {[]byte{0x81, 0x90, 1}, scan.Key},
		"map key":                {[]byte{0x81, 0x80, 1}, scan.Key},
		"cut uint64":             {[]byte{0xcf, 0, 0}, scan.Truncated},
		"cut length":             {[]byte{0xdb, 0, 0}, scan.Truncated},
		"cut map":                {[]byte{0x82, 0xa1, 'a', 1, 1}, scan.Truncated},
	}
}

func TestCheck_Hostile(t *testing.T) {
	for name, row := range hostile() {
		start := time.Now()
		err := scan.Check(row.b, scan.Limits{})
		took := time.Since(start)
		var e *scan.Error
		if !errors.As(err, &e) || e.Rule != row.rule {
			t.Errorf("%s: got %v, want rule %q", name, err, row.rule)
		}
		if took > 500*time.Millisecond { // a runaway, not a benchmark: the budget is 10 ms on an idle machine
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func TestCheck_Limits(t *testing.T) {
	b := []byte{0x92, 0x90, 0x91, 0x90} // 4 containers, depth 3
	rows := []struct {
		lim  scan.Limits
		rule scan.Rule
	}{
		{scan.Limits{Depth: 3, Containers: 4}, ""},
		{scan.Limits{Depth: 2}, scan.Depth},
		{scan.Limits{Containers: 3}, scan.Containers},
		{scan.Limits{Depth: 1000}, ""},
	}
	for _, row := range rows {
		err := scan.Check(b, row.lim)
		var e *scan.Error
		if got := errors.As(err, &e); got != (row.rule != "") || got && e.Rule != row.rule {
			t.Errorf("%+v: got %v, want rule %q", row.lim, err, row.rule)
		}
	}
}

func TestCheck_AllocatesNothing(t *testing.T) {
	b := episode(t, 100)
	if n := testing.AllocsPerRun(100, func() {
		if err := scan.Check(b, scan.Limits{}); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func TestError_Zero(t *testing.T) {
	if got := (&scan.Error{}).Error(); got == "" {
		t.Error("zero Error has no text")
	}
}

// FuzzCheck holds scan against the library's decoder: what the scan accepts, the decoder must be
// able to walk to its last byte.
func FuzzCheck(f *testing.F) {
	for _, row := range hostile() {
		if len(row.b) < 1<<16 {
			f.Add(row.b)
		}
	}
	f.Add(episode(f, 5))
	f.Fuzz(func(t *testing.T, b []byte) {
		if scan.Check(b, scan.Limits{}) != nil {
			return
		}
		r := bytes.NewReader(b)
		d := msgpack.NewDecoder(r)
		if err := d.Skip(); err != nil {
			t.Fatalf("accepted %x, but the decoder says %v", b, err)
		}
		if r.Len() != 0 {
			t.Fatalf("accepted %x with %d bytes after the value", b, r.Len())
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	msg := episode(b, 64<<10)
	b.SetBytes(int64(len(msg)))
	b.ReportAllocs()
	for b.Loop() {
		if err := scan.Check(msg, scan.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck_Hostile(b *testing.B) {
	for name, row := range hostile() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = scan.Check(row.b, scan.Limits{})
			}
		})
	}
}
