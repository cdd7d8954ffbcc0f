package star

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Codes of errors.
const (
	CodeFile   = "script_file"   // a file is not there
	CodeSyntax = "script_syntax" // the file cannot be parsed or names something unknown
	CodeRun    = "script_error"  // it failed while it ran
	CodeSteps  = "script_steps"  // it ran for too long
	CodeResult = "script_result" // it gave something that is not a score or a task
	CodeNone   = "unsupported"   // it does not define the function
)

// Error says what is wrong with a script, and where: Line and Col count from 1, 0 = nowhere.
type Error struct {
	Code, Message string
	File          string
	Line, Col     int
	// Trace are the calls that led there, outermost first, as "file:line:col: in function".
	Trace []string
}

func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Message)
}

// Data is what an error envelope carries beside the message.
func (e *Error) Data() map[string]any {
	if e.File == "" {
		return nil
	}
	data := map[string]any{"file": e.File}
	if e.Line > 0 {
		data["line"], data["column"] = int64(e.Line), int64(e.Col)
	}
	if len(e.Trace) > 0 {
		trace := make([]any, len(e.Trace))
		for i, f := range e.Trace {
			trace[i] = f
		}
		data["trace"] = trace
	}
	return data
}

func at(code string, pos syntax.Position, msg string) *Error {
	return &Error{Code: code, Message: msg, File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col)}
}

// typed makes an Error of what the interpreter gives. source is the file's text, for hints.
func typed(err error, source []byte) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if parse, ok := errors.AsType[syntax.Error](err); ok {
		return at(CodeSyntax, parse.Pos, parse.Msg+hint(source, int(parse.Pos.Line)))
	}
	var unresolved resolve.ErrorList
	if errors.As(err, &unresolved) && len(unresolved) > 0 {
		var more []string
		for _, e := range unresolved[1:min(len(unresolved), maxMore+1)] {
			more = append(more, fmt.Sprintf("\n%s: %s", e.Pos, e.Msg))
		}
		first := unresolved[0]
		return at(CodeSyntax, first.Pos, first.Msg+hint(source, int(first.Pos.Line))+strings.Join(more, ""))
	}
	var run *starlark.EvalError
	if !errors.As(err, &run) {
		return &Error{Code: CodeRun, Message: err.Error()}
	}
	e := &Error{Code: CodeRun, Message: run.Msg}
	function := "it"
	for _, f := range run.CallStack {
		if f.Pos.Line > 0 {
			e.Trace = append(e.Trace, fmt.Sprintf("%s: in %s", f.Pos, f.Name))
			e.File, e.Line, e.Col = f.Pos.Filename(), int(f.Pos.Line), int(f.Pos.Col)
			function = f.Name
		}
	}
	if strings.Contains(run.Msg, tooManySteps) {
		e.Code = CodeSteps
		// The interpreter knows the function here, not the line.
		e.Message = function + " ran for too many steps (option max_steps)"
	}
	return e
}

// maxMore is how many problems of a file are told beside the first one.
const maxMore = 4

// hint says what to write instead of what Python has and Starlark has not.
func hint(source []byte, line int) string {
	lines := strings.Split(string(source), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	s := strings.TrimSpace(lines[line-1])
	for _, h := range []struct{ start, text string }{
		{"import ", "there is no import: re, json, math, text and files are there already"},
		{"from ", "there is no import: re, json, math, text and files are there already"},
		{"try:", "there are no exceptions: test first, and end with fail(\"…\") where nothing helps"},
		{"except", "there are no exceptions: test first, and end with fail(\"…\") where nothing helps"},
		{"raise ", "there are no exceptions: end with fail(\"…\")"},
		{"assert ", "there is no assert: if not …: fail(\"…\")"},
		{"class ", "there are no classes: use dicts and functions"},
		{"with ", "there is no with: files.read(NAME) gives a file's text"},
		{"global ", "globals cannot be changed by a function: return the value"},
	} {
		if strings.HasPrefix(s, h.start) {
			return "\nhint: " + h.text
		}
	}
	for _, h := range []struct{ part, text string }{
		{`f"`, `there are no f-strings: "%s of %d" % (a, b), or "{} of {}".format(a, b)`},
		{`f'`, `there are no f-strings: "%s of %d" % (a, b), or "{} of {}".format(a, b)`},
		{"**", "there is no power operator: math.pow(x, y)"},
		{" is ", "there is no is: ==, !="},
	} {
		if strings.Contains(s, h.part) {
			return "\nhint: " + h.text
		}
	}
	return ""
}
