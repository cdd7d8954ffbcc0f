package envserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
)

// maxReplayLine bounds one recorded completion.
const maxReplayLine = 64 << 20

// replay answers with recorded completions. It holds the place of each line, not its text: about
// 100 bytes a line. The file must not change while it is served.
type replay struct {
	path  string
	file  *os.File
	lines map[replayKey]place
}

// replayKey is a rollout; index everyIndex stands for all of a task's.
type replayKey struct {
	key   string
	index int
}

const everyIndex = -1

type place struct {
	off    int64
	length int32
	line   int32
}

// recorded is a line of the file; other fields are ignored.
type recorded struct {
	Key        *string `json:"key"`
	Index      *int    `json:"index"`
	Completion *string `json:"completion"`
}

// openReplay reads the file once.
//
// # Errors
//
// A line that is no such object, or that names a rollout a second time: "file:line: what".
func openReplay(path string) (*replay, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &replay{path: path, file: f, lines: map[replayKey]place{}}
	if err := r.index(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *replay) index() error {
	in := bufio.NewReaderSize(r.file, 64<<10)
	var off int64
	var buf []byte
	for line := int32(1); ; line++ {
		var err error
		buf, err = readLine(in, buf[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s:%d: %w", r.path, line, err)
		}
		if e := r.add(buf, place{off: off, length: int32(len(buf)), line: line}); e != nil {
			return fmt.Errorf("%s:%d: %w", r.path, line, e)
		}
		off += int64(len(buf))
		if err != nil { // io.EOF
			return nil //nolint:nilerr // the end of the file is the end of the work
		}
	}
}

// readLine appends one line, its newline included.
func readLine(in *bufio.Reader, dst []byte) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		dst = append(dst, part...)
		if len(dst) > maxReplayLine {
			return dst, fmt.Errorf("a line of more than %d MiB", maxReplayLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return dst, err
		}
	}
}

func (r *replay) add(line []byte, at place) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	rec, err := readRecorded(line)
	if err != nil {
		return err
	}
	k := replayKey{key: *rec.Key, index: everyIndex}
	if rec.Index != nil {
		if k.index = *rec.Index; k.index < 0 {
			return fmt.Errorf("index %d is negative", k.index)
		}
	}
	if first, ok := r.lines[k]; ok {
		return fmt.Errorf("%s is recorded twice, first in line %d", k, first.line)
	}
	r.lines[k] = at
	return nil
}

func readRecorded(line []byte) (recorded, error) {
	var rec recorded
	switch err := json.Unmarshal(line, &rec); {
	case err != nil:
		return rec, err
	case rec.Key == nil:
		return rec, errors.New("key is missing")
	case rec.Completion == nil:
		return rec, errors.New("completion is missing")
	}
	return rec, nil
}

func (k replayKey) String() string {
	if k.index == everyIndex {
		return strconv.Quote(k.key)
	}
	return fmt.Sprintf("%q index %d", k.key, k.index)
}

func (r *replay) complete(ctx context.Context, c *call) (completion, int, error) {
	if ctx.Err() != nil {
		return completion{}, 1, context.Cause(ctx)
	}
	if c.tag == nil {
		return completion{}, 1, failCall(http.StatusNotFound, "offline/replay: the request names no task (wevalr.key)")
	}
	k := replayKey{key: c.tag.Key, index: c.tag.Index}
	at, ok := r.lines[k]
	if !ok {
		at, ok = r.lines[replayKey{key: k.key, index: everyIndex}]
	}
	if !ok {
		return completion{}, 1, failCall(http.StatusNotFound, "offline/replay: %s is not recorded in %s", k, r.path)
	}
	line := make([]byte, at.length)
	if _, err := r.file.ReadAt(line, at.off); err != nil {
		return completion{}, 1, failCall(http.StatusGone, "offline/replay: %s:%d: %v", r.path, at.line, err)
	}
	rec, err := readRecorded(line)
	if err != nil || *rec.Key != k.key {
		return completion{}, 1, failCall(http.StatusGone, "offline/replay: %s:%d: the file has changed since it was opened", r.path, at.line)
	}
	return answer(*rec.Completion), 1, nil
}

// Close ends the file.
func (r *replay) Close() error { return r.file.Close() }
