package plugin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/hostile"
)

// withFiles lets the process open n more files while f runs.
func withFiles(t *testing.T, n int, f func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	next, err := os.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	less := was
	less.Cur = uint64(next.Fd()) + uint64(n)
	_ = next.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &less); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// A process that may open no more files says so: not that a manifest is missing or forbidden, not that a folder
// has no files in it, and not to the guest, whose score would depend on it.
func TestTree_TooManyFiles(t *testing.T) {
	dir := dataset(t)
	writeFile(t, dir, manifestFile, manifestHead+scorerManifest)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	opens := slices.IndexFunc(hostile.Modules(), func(m hostile.Module) bool { return m.Name == "all the descriptors there are" })
	p := load(t, newEngine(t), Spec{
		Source: source(t, hostile.Modules()[opens].Wasm), Grants: Grants{FS: map[string]string{"dataset": dir}},
	})
	ask := func() error {
		_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		files int
		f     func() error
	}{
		"open":     {0, func() error { _, err := fs.ReadFile(tree{root}, "in"); return err }},
		"digest":   {0, func() error { _, err := tree{root}.digest(context.Background()); return err }},
		"manifest": {1, func() error { _, err := readParts(dir); return err }},
		"guest":    {0, ask},
	} {
		p.pool.drain(p.engine) // with what its instances have open
		var err error
		withFiles(t, tc.files, func() { err = tc.f() })
		if !errors.Is(err, syscall.EMFILE) {
			t.Errorf("%s: got %v, want EMFILE", name, err)
		}
		var b *BuildError
		if errors.As(err, &b) && b.Step != "read" || name == "guest" && err != nil && failure.Of(err).Source == failure.Plugin {
			t.Errorf("%s: %v is said to be the plugin's", name, err)
		}
	}
	if err := ask(); err != nil {
		t.Errorf("later: %v", err)
	}
}

// Nor is it the plugin's, or its folder's, where an instance is put back whose state has a file open, and where
// an open file cannot be read.
func TestTree_HostTroubleIsNotThePlugins(t *testing.T) {
	dir := dataset(t)
	g := &guest{
		Manifest: scorerManifest + "[capabilities]\nfs = { dataset = {} }\n",
		Imports:  []guestImport{{Module: wasi, Name: "path_open", Params: "iiiiiIIii", Results: "i"}},
	}
	in, n := g.Put("in")
	g.Init = cat(callImport(0, 3, 1, in, n, 0, int64(2), int64(0), 0, roomAt), expect(0), g.Answer(`{"ok":{}}`))
	g.Body = g.Answer(score("1"))
	p := loadGuest(t, g, func(s *Spec) { s.Grants.FS = map[string]string{"dataset": dir} })
	p.pool.drain(p.engine)
	var err error
	withFiles(t, 0, func() { _, err = p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"}) })
	if f := failure.Of(err); !errors.Is(err, syscall.EMFILE) || f.Source == failure.Config || f.Source == failure.Plugin {
		t.Errorf("got %s/%s (%v), want EMFILE", f.Source, f.Kind, err)
	}

	for _, want := range []error{syscall.EIO, syscall.EINVAL} {
		func() {
			defer func() {
				r := recover()
				if e, ok := r.(*hostError); (want == syscall.EIO) != (ok && errors.Is(e.cause, want)) {
					t.Errorf("%v: got %v", want, r)
				}
			}()
			if e := statusOfOpen(&fs.PathError{Op: "read", Path: "in", Err: want}); e != errIO {
				t.Errorf("%v: got %v, want %v", want, e, errIO)
			}
		}()
	}
}

func TestDescriptors_KeepFewEntries(t *testing.T) {
	d := newDescriptors(nil)
	for range 10 {
		f := &descriptor{kind: kindFolder}
		d.open[d.free()] = f
		d.keep(f, make([]fs.DirEntry, maxListed/2))
		if held := len(f.entries); held != maxListed/2 {
			t.Errorf("%d entries of the last, want all", held)
		}
	}
	held := 0
	for _, f := range d.open {
		held += len(f.entries)
	}
	if held > maxListed {
		t.Errorf("%d entries are kept, want at most %d", held, maxListed)
	}
}

// Reading a granted folder may take long. Whoever gives up is not told that the folder is at fault.
func TestTree_DigestEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("gone")
	cancel(gone)
	root, err := os.OpenRoot(dataset(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if _, err := (tree{root}).digest(ctx); !errors.Is(err, gone) {
		t.Errorf("between files: got %v, want %v", err, gone)
	}
	if _, err := until(ctx, strings.NewReader("text")).Read(make([]byte, 1)); !errors.Is(err, gone) {
		t.Errorf("within a file: got %v, want %v", err, gone)
	}
	g := scoring(score("1"))
	g.Manifest = scorerManifest + "[capabilities]\nfs = { dataset = {} }\n"
	spec := Spec{Source: source(t, g.Bytes()), Grants: Grants{FS: map[string]string{"dataset": root.Name()}}}
	_, err = newEngine(t).Load(ctx, spec)
	var grant *GrantError
	if !errors.Is(err, gone) || errors.As(err, &grant) {
		t.Errorf("loading: got %v, want %v", err, gone)
	}
}
