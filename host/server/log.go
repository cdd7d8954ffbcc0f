package server

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/wevalr/wevalr/procwatch"
)

// logFile takes the child's output, a line at a time, from procwatch's sink goroutine.
type logFile struct {
	mu sync.Mutex
	f  *os.File
	w  *bufio.Writer
}

// openLog appends to path; "" discards.
func openLog(path string) (*logFile, error) {
	if path == "" {
		return &logFile{}, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("log of the env-server: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of the env-server: %w", err)
	}
	return &logFile{f: f, w: bufio.NewWriter(f)}, nil
}

// write keeps bytes as they are. A full disk costs log lines, never the child: the ring keeps the last.
func (l *logFile) write(line procwatch.Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		return
	}
	_, _ = l.w.Write(line.Text)
	_ = l.w.WriteByte('\n')
	_ = l.w.Flush()
}

// lost notes what write never got, since the disk was too slow for it.
func (l *logFile) lost(d procwatch.Dropped) {
	if d.Lines > 0 {
		l.write(procwatch.Line{Text: fmt.Appendf(nil, "[wevalr: %d lines (%d bytes) before this one were dropped]", d.Lines, d.Bytes)})
	}
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		_ = l.w.Flush()
		_ = l.f.Close()
		l.f, l.w = nil, nil
	}
}
