package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine is the longest line that is read: an error of ours is more likely than one so long.
const maxLine = 1 << 30

// lineReader reads complete lines. What follows the last newline is torn: it is counted, not given.
type lineReader struct {
	r    *bufio.Reader
	file string
	line int   // number of the last line given
	off  int64 // where the next line begins
	torn int64 // bytes after the last newline, known at the end
	buf  []byte
}

func newLineReader(r io.Reader, file string) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), file: file}
}

// next gives the next line without its newline, valid until the following call, or io.EOF.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case err == nil && len(l.buf) == 0:
			l.line, l.off = l.line+1, l.off+int64(len(part))
			return part[:len(part)-1], nil
		case err == nil:
			l.buf = append(l.buf, part...)
			l.line, l.off = l.line+1, l.off+int64(len(l.buf))
			return l.buf[:len(l.buf)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
			if l.buf = append(l.buf, part...); len(l.buf) > maxLine {
				return nil, l.corrupt(fmt.Errorf("longer than %d bytes", maxLine))
			}
		case errors.Is(err, io.EOF):
			l.torn = int64(len(l.buf) + len(part))
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("journal: read %s: %w", l.file, err)
		}
	}
}

// corrupt says that the line just given is broken.
func (l *lineReader) corrupt(err error) error { return &CorruptError{l.file, l.line, err} }

// eachLine calls f for every complete line of a file's first size bytes (all of it when size < 0),
// and gives where the last one ends. A file that is not there has no lines.
func eachLine(root *os.Root, name string, size int64, f func(l *lineReader, line []byte) error) (end, torn int64, err error) {
	file, err := root.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("journal: %w", err)
	}
	defer file.Close()
	var r io.Reader = file
	if size >= 0 {
		r = io.LimitReader(file, size)
	}
	l := newLineReader(r, name)
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return l.off, l.torn, nil
		}
		if err == nil {
			err = f(l, line)
		}
		if err != nil {
			return l.off, 0, err
		}
	}
}
