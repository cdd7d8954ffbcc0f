package star

import (
	"fmt"
	"strconv"
	"strings"

	sjson "go.starlark.net/lib/json"
	smath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Options are a script's world; the zero value has no files and no options.
type Options struct {
	// Read gives a file: an asset or a file of the dataset. nil = there are none.
	Read func(name string) ([]byte, error)
	// Print gets what the script prints; nil = discard.
	Print func(text string)
	// Values is the dict `options`.
	Values map[string]any
	// Steps bounds every call and the run of the file itself; 0 = 20 million, about two seconds.
	Steps uint64
}

const defaultSteps = 20_000_000

// tooManySteps is how the interpreter says that its limit was reached.
const tooManySteps = "Starlark computation cancelled: too many steps"

// Script is a file that has run once: its functions can be called.
type Script struct {
	file        string
	opt         Options
	source      map[string][]byte
	loaded      map[string]*module // by file; nil while it runs
	predeclared starlark.StringDict
	globals     starlark.StringDict
	tasks       []abi.Task
}

type module struct{ globals starlark.StringDict }

// Load reads and runs a file.
func Load(file string, opt Options) (*Script, error) {
	if opt.Steps == 0 {
		opt.Steps = defaultSteps
	}
	s := &Script{file: file, opt: opt, source: map[string][]byte{}, loaded: map[string]*module{}}
	options := dictOf(opt.Values, toStarlark)
	options.Freeze()
	s.predeclared = starlark.StringDict{
		"json": sjson.Module, "math": smath.Module, "re": newRegexps().module(), "text": textModule(),
		"files": s.filesModule(), "options": options,
	}
	globals, err := s.exec(s.thread(), file)
	if err != nil {
		return nil, typed(err, s.source[file])
	}
	s.globals = globals
	return s, nil
}

func (s *Script) thread() *starlark.Thread {
	t := &starlark.Thread{Name: s.file, Load: s.exec}
	t.Print = func(_ *starlark.Thread, msg string) {
		if s.opt.Print != nil {
			s.opt.Print(msg)
		}
	}
	t.SetMaxExecutionSteps(s.opt.Steps)
	return t
}

// exec runs a file once; it is load() too.
func (s *Script) exec(t *starlark.Thread, file string) (starlark.StringDict, error) {
	if m, seen := s.loaded[file]; m != nil {
		return m.globals, nil
	} else if seen {
		return nil, fmt.Errorf("%s loads itself", file)
	}
	s.loaded[file] = nil
	b, err := s.read(file)
	if err != nil {
		return nil, err
	}
	s.source[file] = b
	globals, err := starlark.ExecFileOptions(&syntax.FileOptions{
		Set: true, While: true, TopLevelControl: true, GlobalReassign: true,
	}, t, file, b, s.predeclared)
	if err != nil {
		return nil, typed(err, b)
	}
	globals.Freeze()
	s.loaded[file] = &module{globals}
	return globals, nil
}

func (s *Script) read(name string) ([]byte, error) {
	if s.opt.Read == nil {
		return nil, &Error{Code: CodeFile, File: name, Message: "no such file: there are no assets and no dataset"}
	}
	b, err := s.opt.Read(name)
	if err != nil {
		return nil, &Error{Code: CodeFile, File: name, Message: err.Error()}
	}
	return b, nil
}

// Score calls score_NAME, else score.
func (s *Script) Score(r abi.ScoreRequest) ([]abi.Score, error) {
	names := []string{"score"}
	if r.Scorer != "group" { // score_group is another kind of function
		names = []string{"score_" + identifier(r.Scorer), "score"}
	}
	return s.score(names, r.Seed, taskRecord(&r.Task), episodeRecord(&r.Episode))
}

// ScoreGroup calls score_group_NAME, else score_group.
func (s *Script) ScoreGroup(r abi.ScoreGroupRequest) ([]abi.Score, error) {
	episodes := listOf(r.Episodes, func(e abi.Episode) starlark.Value { return episodeRecord(&e) })
	return s.score([]string{"score_group_" + identifier(r.Scorer), "score_group"}, r.Seed, taskRecord(&r.Task), episodes)
}

func identifier(scorer string) string { return strings.ReplaceAll(scorer, "-", "_") }

func (s *Script) score(names []string, seed int64, args ...starlark.Value) ([]abi.Score, error) {
	f := s.function(names...)
	if f == nil {
		return nil, s.missing(names, "task, "+map[bool]string{true: "episodes", false: "episode"}[strings.HasPrefix(names[len(names)-1], "score_group")])
	}
	var kwargs []starlark.Tuple
	for i := range f.NumParams() {
		if name, _ := f.Param(i); name == "seed" {
			kwargs = []starlark.Tuple{{starlark.String("seed"), starlark.MakeInt64(seed)}}
		}
	}
	v, err := s.call(f, args, kwargs)
	if err != nil {
		return nil, err
	}
	out, err := scores(v)
	if err != nil {
		return nil, at(CodeResult, f.Position(), f.Name()+" gave "+err.Error())
	}
	return out, nil
}

// Tasks gives at most limit tasks from where cursor stands, as the ABI's op 2. The function tasks is
// called once.
func (s *Script) Tasks(cursor string, limit int) ([]abi.Task, string, error) {
	if s.tasks == nil {
		if err := s.makeTasks(); err != nil {
			return nil, "", err
		}
	}
	from := 0
	if cursor != "" {
		var err error
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 || from > len(s.tasks) {
			return nil, "", &Error{Code: "bad_cursor", Message: "bad cursor " + strconv.Quote(cut(cursor))}
		}
	}
	to := min(from+max(limit, 1), len(s.tasks))
	next := ""
	if to < len(s.tasks) {
		next = strconv.Itoa(to)
	}
	return s.tasks[from:to], next, nil
}

func (s *Script) makeTasks() error {
	f := s.function("tasks")
	if f == nil {
		return s.missing([]string{"tasks"}, "")
	}
	v, err := s.call(f, nil, nil)
	if err != nil {
		return err
	}
	list, ok := v.(starlark.Iterable)
	if _, isMap := v.(starlark.IterableMapping); !ok || isMap {
		return at(CodeResult, f.Position(), "tasks gave "+v.Type()+", want a list of dicts")
	}
	s.tasks = []abi.Task{}
	for e := range starlark.Elements(list) {
		t, err := task(e)
		if err != nil {
			s.tasks = nil
			return at(CodeResult, f.Position(), fmt.Sprintf("tasks gave as task %d: %v", len(s.tasks), err))
		}
		s.tasks = append(s.tasks, t)
	}
	return nil
}

// function finds the first of the names that is a function of the file.
func (s *Script) function(names ...string) *starlark.Function {
	for _, n := range names {
		if f, ok := s.globals[n].(*starlark.Function); ok {
			return f
		}
	}
	return nil
}

func (s *Script) missing(names []string, params string) error {
	return &Error{Code: CodeNone, File: s.file, Message: fmt.Sprintf("defines no %s: def %s(%s): …",
		strings.Join(names, " and no "), names[len(names)-1], params)}
}

func (s *Script) call(f *starlark.Function, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Call(s.thread(), f, args, kwargs)
	if err != nil {
		return nil, typed(err, nil)
	}
	return v, nil
}
