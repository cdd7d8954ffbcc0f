package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host"
)

// block is a fenced block of a document.
type block struct {
	info string // what follows the fence: "sh run", "toml"
	line int    // of the fence
	text string
}

// blocks reads the fenced blocks of a Markdown text; a fence may be indented in a list.
func blocks(text string) []block {
	var out []block
	in := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```") && !in:
			in = true
			out = append(out, block{info: strings.TrimSpace(strings.TrimLeft(trimmed, "`")), line: i + 1})
		case trimmed == "```":
			in = false
		case in:
			out[len(out)-1].text += line + "\n"
		}
	}
	return out
}

// documents are the Markdown files whose every command is run by TestDocs.
func documents(t *testing.T, root string) []string {
	t.Helper()
	found := []string{filepath.Join(root, "README.md")}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return append(found, docs...)
}

// TestDocs runs the commands of README.md and docs/*.md. A block that begins with "```sh run" is run, as
// one script for sh -e in a copy of the checkout; "```sh norun REASON" is not run, but its wevalr command
// lines must be ones that wevalr understands. No other block may hold a command. A "```toml" block that
// begins with `version` is an eval file, and must pass `wevalr config check`.
func TestDocs(t *testing.T) {
	t.Parallel()
	root := repoRoot(t)
	for _, path := range documents(t, root) {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.ReplaceAll(name, string(filepath.Separator), "_"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := "" // made when the first block needs it, and shared by the file's blocks
			for _, b := range blocks(string(text)) {
				checkBlock(t, name, b)
				eval := b.info == "toml" && strings.HasPrefix(b.text, "version")
				if (b.info == "sh run" || eval) && dir == "" {
					dir = checkout(t, root)
				}
				switch {
				case eval:
					checkEval(t, name, dir, b)
				case b.info == "sh run":
					runBlock(t, name, dir, b)
				}
			}
		})
	}
}

// checkBlock holds a block to the convention.
func checkBlock(t *testing.T, name string, b block) {
	t.Helper()
	words := strings.Fields(b.info)
	switch {
	case b.info == "sh run":
	case len(words) > 2 && words[0] == "sh" && words[1] == "norun":
		for i, line := range strings.Split(b.text, "\n") {
			checkCommand(t, name, b.line+1+i, line)
		}
	case len(words) > 0 && (words[0] == "sh" || words[0] == "bash" || words[0] == "shell" || words[0] == "console"):
		t.Errorf("%s:%d: ```%s: write ```sh run, or ```sh norun and the reason", name, b.line, b.info)
	default:
		for i, line := range strings.Split(b.text, "\n") {
			for _, prefix := range []string{"$ ", "wevalr ", "go run "} {
				if strings.HasPrefix(strings.TrimSpace(line), prefix) {
					t.Errorf("%s:%d: a command in a block that is not ```sh run or ```sh norun: %s", name, b.line+1+i, line)
				}
			}
		}
	}
}

// checkCommand checks that a line `wevalr VERB …` names a verb, flags and arguments that there are.
func checkCommand(t *testing.T, name string, line int, text string) {
	t.Helper()
	text, _, _ = strings.Cut(text, " #")
	args := strings.Fields(strings.TrimSpace(text))
	if len(args) < 2 || args[0] != "wevalr" || strings.ContainsAny(text, "'\"|&;<>$") {
		return
	}
	a := &app{host: host.New(io.Discard, io.Discard, nil, nil)}
	cmd, rest, err := a.root().Find(args[1:])
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s:%d: %s: %v", name, line, text, err)
	}
}

// checkout copies what the commands of a document need.
func checkout(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"configs", "plugins"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runBlock runs a block. `go run ./cmd/wevalr` is this binary: the same program, and not built again.
func runBlock(t *testing.T, name, dir string, b block) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", strings.ReplaceAll(b.text, "go run ./cmd/wevalr", "wevalr"))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s:%d: %v\n%s", name, b.line, err, out)
	}
}

// checkEval checks an eval file beside configs and plugins; what it names by way of example is there.
func checkEval(t *testing.T, name, dir string, b block) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "example.toml"), []byte(b.text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startEnv(t, dir, []string{"OPENAI_API_KEY=an-example-only"}, "config", "check", "example.toml")
	if code := p.exit(t); code != 0 {
		t.Errorf("%s:%d: exit code %d\n%s", name, b.line, code, p.stderr.String())
	}
}

// Every eval file of configs passes its check, or names data that is not here.
func TestConfigs(t *testing.T) {
	t.Parallel()
	root := repoRoot(t)
	files, err := filepath.Glob(filepath.Join(root, "configs", "*.toml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			if text, err := os.ReadFile(f); err != nil || strings.Contains(string(text), "shared/data") {
				sharedData(t, "")
			}
			p := startEnv(t, root, []string{"OPENAI_API_KEY=an-example-only"}, "run", f, "--dry-run")
			if code := p.exit(t); code != 0 {
				t.Errorf("exit code %d\n%s", code, p.stderr.String())
			}
		})
	}
}
