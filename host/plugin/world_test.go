package plugin

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/wasm"
)

func TestTree_StaysInside(t *testing.T) {
	dir := dataset(t)
	if err := os.Symlink("in", filepath.Join(dir, "good")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	tr := tree{root}
	secret := filepath.Join(filepath.Dir(dir), "outside", "secret")
	for _, name := range []string{"absolute", "relative", "folder/secret", "../outside/secret", secret, "pipe", "none"} {
		if b, err := fs.ReadFile(tr, name); err == nil {
			t.Errorf("%s: read %q", name, b)
		} else if strings.Contains(err.Error(), dir) && name != secret {
			t.Errorf("%s: %v names the host's path", name, err)
		}
	}
	for _, name := range []string{"in", "good"} {
		if b, err := fs.ReadFile(tr, name); err != nil || string(b) != "in" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	before, err := tr.digest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("IN"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after, _ := tr.digest(context.Background()); after == before {
		t.Error("a changed file leaves the digest as it was")
	}
	var digests []string
	for _, sub := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, sub), "text", sub)
	}
	for _, target := range []string{"a", "b"} {
		link := filepath.Join(dir, "current")
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		sum, err := tr.digest(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, sum)
	}
	if digests[0] == digests[1] {
		t.Error("a link to another folder leaves the digest as it was")
	}
}

func TestWorld_ScorersGetNoClock(t *testing.T) {
	w := newWorld(Grants{Clock: true, Random: true}, nil, nil)
	stream := func(op abi.Op, seed int64) string {
		w.begin(op, seed)
		b := make([]byte, 8)
		_, _ = w.Read(b)
		return string(b)
	}
	first, again := stream(abi.OpScore, 1), stream(abi.OpScore, 1)
	if first != again || first == stream(abi.OpScore, 2) {
		t.Error("a scorer's stream does not depend on its seed alone")
	}
	first, again = stream(abi.OpRollout, 1), stream(abi.OpRollout, 1)
	if first == again {
		t.Error("entropy is granted, but a rollout's stream repeats")
	}
	w.begin(abi.OpScore, 1)
	sec, _ := w.walltime()
	w.sleep(int64(3 * time.Hour))
	later, _ := w.walltime()
	if sec != epoch+3600 || later-sec != 3*3600 {
		t.Errorf("clock %d, after 3 h of sleep %d", sec, later)
	}
	w.begin(abi.OpRollout, 1)
	if sec, _ := w.walltime(); time.Since(time.Unix(sec, 0)) > time.Minute {
		t.Errorf("the clock is granted, but a rollout sees %d", sec)
	}
}

func TestPrivateDir(t *testing.T) {
	base := t.TempDir()
	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{open: "chmod 700", link: "not a folder", filepath.Join(base, "new", "one"): ""} {
		err := privateDir(dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", dir, err, want)
		}
	}
}

func TestLog_Flood(t *testing.T) {
	var out bytes.Buffer
	e := newEngine(t)
	e.log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	g := &guest{Imports: []guestImport{env("log", 3), env("log_enabled", 1)}}
	ptr, n := g.Put("TOKEN\x1b[2J" + long(4000))
	for range 20 {
		g.Body = cat(g.Body, callImport(0, abi.LevelInfo, ptr, n), expect(0))
	}
	g.Body = cat(g.Body, callImport(0, 9, ptr, n), expect(int32(abi.Invalid)), callImport(1, abi.LevelDebug), expect(1), callImport(1, 9), expect(0),
		callImport(1, abi.LevelInfo), expect(1), g.Answer(score("1")))
	p := load(t, e, Spec{Source: source(t, g.Bytes()), Mask: func(s string) string { return strings.ReplaceAll(s, "TOKEN", "[KEY]") }})
	if _, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct"}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if n := strings.Count(text, "plugin message truncated"); n != 1 {
		t.Errorf("%d truncation lines, want 1", n)
	}
	if len(text) > 20<<10 || strings.Contains(text, "TOKEN") || strings.Contains(text, "x1b") || !strings.Contains(text, "[KEY]") {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

func TestStopwatch_StandsStill(t *testing.T) {
	fired := make(chan struct{})
	s := newStopwatch(30*time.Millisecond, func() { close(fired) })
	s.pause()
	select {
	case <-fired:
		t.Fatal("fired while it stood still")
	case <-time.After(60 * time.Millisecond):
	}
	s.resume()
	<-fired
	if used := s.stop(); used < 25*time.Millisecond || used > time.Second {
		t.Errorf("used %v", used)
	}
}

func TestEncode_IsDeterministic(t *testing.T) {
	f := 1.0
	ep := abi.Episode{Metrics: map[string]*float64{}, Rewards: map[string]*abi.Reward{}, Info: map[string]any{}}
	for _, k := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		ep.Metrics[k], ep.Rewards[k], ep.Info[k] = &f, &abi.Reward{Score: 1}, map[string]any{"y": 1, "x": 2}
	}
	ep.Traces = []abi.Episode{ep}
	for _, enc := range []string{abi.EncodingMsgpack, abi.EncodingJSON} {
		for _, v := range []any{
			abi.ScoreRequest{Episode: ep}, abi.ScoreGroupRequest{Episodes: []abi.Episode{ep}}, abi.EnvReply{Episode: &ep},
		} {
			first, err := encode(enc, v)
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if again, _ := encode(enc, v); !bytes.Equal(first, again) {
					t.Fatalf("%s: %T: other bytes", enc, v)
				}
			}
		}
	}
}

// The packed forms must keep up with the abi's.
func TestPacked_HasTheFieldsOfTheABI(t *testing.T) {
	var plainJSON, packedMsgpack map[string]any
	f := 1.0
	ep := abi.Episode{
		Completion: "c", Messages: []abi.Message{{}}, Info: map[string]any{"a": "b"}, StopCondition: "s", Errors: []abi.TraceError{{}},
		Rewards: map[string]*abi.Reward{"r": {}}, Metrics: map[string]*float64{"m": &f}, Usage: &abi.Usage{},
		Timing: map[string]any{"t": 1}, ToolCalls: []abi.ToolCall{{}}, Tokens: []abi.NodeTokens{{}}, Traces: []abi.Episode{{}},
	}
	j, _ := encode(abi.EncodingJSON, ep)
	m, _ := encode(abi.EncodingMsgpack, abi.EnvReply{Episode: &ep})
	fields, err := decodeFields(abi.EncodingMsgpack, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(abi.EncodingJSON, j, &plainJSON); err != nil {
		t.Fatal(err)
	}
	if err := decode(abi.EncodingMsgpack, fields["ok"], &packedMsgpack); err != nil {
		t.Fatal(err)
	}
	if got, want := sortedKeys(packedMsgpack), sortedKeys(plainJSON); strings.Join(got, " ") != strings.Join(want, " ") || len(want) != 12 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLog_EmptyMessages(t *testing.T) {
	lines := 0
	e := newEngine(t)
	e.log = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) { lines++; return len(p), nil }), nil))
	g := &guest{Imports: []guestImport{env("log", 3)}}
	g.Body = wasm.Forever(cat(callImport(0, abi.LevelInfo, dataAt, 0), drop()))
	p := load(t, e, Spec{Source: source(t, g.Bytes()), Limits: Limits{Fuel: 10_000_000}})
	_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct"})
	checkFailure(t, err, "fuel", "")
	if lines > logPerCall+1 {
		t.Errorf("%d lines, want at most %d and one that says so", lines, logPerCall)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A sleep by the real clock takes little fuel, so fuel alone would look for the call's end much too late.
func TestClock_SleepSeesTheEnd(t *testing.T) {
	g := &guest{
		Manifest: "provides = [\"task/v1\"]\n[capabilities]\nclock = {}\n",
		Imports:  []guestImport{{Module: wasi, Name: "poll_oneoff", Params: "iiii", Results: "i"}, env("log", 3)},
	}
	// A subscription to the monotonic clock, for a second; and a message after each sleep.
	g.Body = cat(i32c(bufAt), i32c(0), i32c(48), op(0xfc, 0x0b, 0), i32c(bufAt+16), i32c(1), op(0x36, 2, 0), i32c(bufAt+24), i64c(1e9), op(0x37, 3, 0),
		wasm.Forever(cat(callImport(0, bufAt, roomAt, 1, roomAt+64), drop(), callImport(1, abi.LevelInfo, dataAt, 1), drop())))
	ctx, late := context.Background(), 0
	e := newEngine(t)
	e.log = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			late++
		}
		return len(p), nil
	}), nil))
	p := load(t, e, Spec{Source: source(t, g.Bytes()), Grants: Grants{Clock: true}})
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := p.Tasks(ctx, func(abi.Task) error { return nil }); !errors.Is(err, context.DeadlineExceeded) || late > 1 {
		t.Errorf("got %v, and %d sleeps more", err, late)
	}
}

// A secret is hidden before text is cut to its limit: what is left of one would not be known for it.
func TestText_SecretAtTheCut(t *testing.T) {
	const secret = "TOKEN-of-someone"
	mask := func(s string) string { return strings.ReplaceAll(s, secret, "[KEY]") }
	var out bytes.Buffer
	e := newEngine(t)
	e.log = slog.New(slog.NewTextHandler(&out, nil))
	logs := &guest{Imports: []guestImport{env("log", 3), env("fail", 2)}}
	ptr, n := logs.Put(long(logPerCall-5) + secret)
	why, whyLen := logs.Put(long(maxFailText-5) + secret)
	logs.Body = cat(callImport(0, abi.LevelInfo, ptr, n), drop(), callImport(1, why, whyLen), drop(), unreachable())
	answers := scoring(`{"err":{"code":"` + long(95) + secret + `","message":"` + long(maxErrorText-5) + secret + `"}}`)
	for _, g := range []*guest{logs, answers} {
		p := load(t, e, Spec{Source: source(t, g.Bytes()), Mask: mask})
		_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct"})
		if err == nil || strings.Contains(err.Error(), "xTOK") {
			t.Errorf("%T shows a part of a secret", err)
		}
	}
	if !strings.Contains(out.String(), "plugin message") || strings.Contains(out.String(), "xTOK") {
		t.Error("the log shows a part of a secret")
	}
}
