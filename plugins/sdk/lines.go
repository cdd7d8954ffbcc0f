package sdk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
)

// maxLine leaves room in a page of tasks for a line whose task is longer than itself.
const maxLine = abi.MaxTasksResponse / 2

// Lines reads a file line by line from a cursor, so that each page of a task set reads only what it
// needs.
type Lines struct {
	file  fs.File
	name  string
	buf   []byte // read, from offset on
	start int    // of what is left in buf
	eof   bool
	line  []byte
	index int
	at    int64 // offset of the line after the current one
	err   error
}

// OpenLines opens a file of fsys at a cursor that [Lines.Cursor] gave; "" is the beginning.
func OpenLines(fsys fs.FS, name, cursor string) (*Lines, error) {
	l := &Lines{name: name, index: -1}
	if cursor != "" {
		index, offset, ok := strings.Cut(cursor, "@")
		i, err1 := strconv.Atoi(index)
		at, err2 := strconv.ParseInt(offset, 10, 64)
		if !ok || err1 != nil || err2 != nil || i < 0 || at < 0 {
			return nil, NewError(codeRequest, "tasks: bad cursor "+cursor)
		}
		l.index, l.at = i-1, at
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, NewError("dataset", "the dataset has no readable "+name+" (is fs.dataset granted?): "+err.Error())
	}
	if l.at > 0 {
		if s, ok := f.(io.Seeker); ok {
			_, err = s.Seek(l.at, io.SeekStart)
		} else {
			_, err = io.CopyN(io.Discard, f, l.at)
		}
		if err != nil {
			_ = f.Close()
			return nil, NewError("dataset", name+": "+err.Error())
		}
	}
	l.file = f
	return l, nil
}

// Next goes to the next line and reports whether there is one. A line ends in \n or \r\n, the last one
// at the file's end; a byte order mark at the beginning is dropped. A line has at most 32 MiB.
func (l *Lines) Next() bool {
	scanned := 0
	for l.err == nil {
		rest := l.buf[l.start:]
		if i := bytes.IndexByte(rest[scanned:], '\n'); i >= 0 {
			l.set(rest[:scanned+i], scanned+i+1)
			return true
		}
		scanned = len(rest)
		switch {
		case l.eof && scanned == 0:
			return false
		case l.eof:
			l.set(rest, scanned)
			return true
		case scanned > maxLine:
			l.err = NewError("dataset", l.Where()+": longer than 32 MiB")
			return false
		}
		l.fill()
	}
	return false
}

func (l *Lines) set(line []byte, used int) {
	if l.at == 0 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	l.line = bytes.TrimSuffix(line, []byte("\r"))
	l.index++
	l.start += used
	l.at += int64(used)
}

func (l *Lines) fill() {
	if l.start > 0 {
		l.buf = l.buf[:copy(l.buf, l.buf[l.start:])]
		l.start = 0
	}
	n := len(l.buf)
	if cap(l.buf)-n < 32<<10 {
		grown := make([]byte, n, max(64<<10, 2*cap(l.buf)))
		copy(grown, l.buf)
		l.buf = grown
	}
	got, err := l.file.Read(l.buf[n:cap(l.buf)])
	l.buf = l.buf[:n+got]
	switch {
	case errors.Is(err, io.EOF):
		l.eof = true
	case err != nil:
		l.err = NewError("dataset", l.name+": "+err.Error())
	}
}

// Bytes is the current line, valid until Next.
func (l *Lines) Bytes() []byte { return l.line }

// Index is the current line's number, from 0.
func (l *Lines) Index() int { return l.index }

// Where names the line as a person counts, from 1: "test.jsonl:7".
func (l *Lines) Where() string { return l.name + ":" + strconv.Itoa(l.index+1) }

// Cursor is where the line after the current one begins.
func (l *Lines) Cursor() string {
	return strconv.Itoa(l.index+1) + "@" + strconv.FormatInt(l.at, 10)
}

// Err is why Next ended early, nil at the file's end.
func (l *Lines) Err() error { return l.err }

// Close closes the file.
func (l *Lines) Close() error { return l.file.Close() }

// maxPage is about how many bytes of lines make one page of tasks.
const maxPage = 1 << 20

// LinePage is one page of a task set that is a file with a task a line: a whole Tasks function. at makes
// the task of the current line; false leaves the line out. A page ends at limit tasks or after about
// 1 MiB of lines.
func LinePage(fsys fs.FS, name, cursor string, limit int, at func(*Lines) (Task, bool, error)) ([]Task, string, error) {
	l, err := OpenLines(fsys, name, cursor)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = l.Close() }()
	var tasks []Task
	begin := l.at
	for l.Next() {
		t, ok, err := at(l)
		if err != nil {
			return nil, "", err
		}
		if ok {
			tasks = append(tasks, t)
		}
		if len(tasks) >= limit || l.at-begin >= maxPage {
			return tasks, l.Cursor(), nil
		}
	}
	return tasks, "", l.Err()
}
