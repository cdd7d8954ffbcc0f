package procwatch

import (
	"os"
	"slices"
	"sync"
	"time"
)

// output is both streams of a child: they are read without a pause, kept in a tail, and offered to
// the sink.
type output struct {
	spec    Spec
	readers []*os.File
	read    sync.WaitGroup
	queue   *queue        // nil: no sink
	matched chan struct{} // closed by the first line that ReadyLine matches

	mu    sync.Mutex
	match bool // a line has matched
	seq   int64
	tail  []Line
	bytes int
}

// newOutput makes the pipes and returns their write ends, stdout first.
func newOutput(spec Spec) (o *output, writers []*os.File, err error) {
	o = &output{spec: spec, matched: make(chan struct{})}
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(o.readers)
			closeAll(writers)
			return nil, nil, err
		}
		o.readers = append(o.readers, r)
		writers = append(writers, w)
	}
	return o, writers, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// start reads until drain.
func (o *output) start() {
	if o.spec.Sink != nil {
		o.queue = newQueue(o.spec.Sink, o.spec.Logger)
		go o.queue.run()
	}
	for i, stream := range []string{"stdout", "stderr"} {
		o.read.Go(func() { o.readStream(stream, o.readers[i]) })
	}
}

func (o *output) readStream(stream string, r *os.File) {
	s := splitter{max: o.spec.MaxLine, emit: func(text []byte, truncated bool) {
		o.add(Line{Stream: stream, Text: text, Truncated: truncated, At: time.Now()})
	}}
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		s.write(buf[:n])
		if err != nil {
			s.flush()
			return
		}
	}
}

func (o *output) add(l Line) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq++
	l.Seq = o.seq
	o.tail = append(o.tail, l)
	o.bytes += len(l.Text)
	drop := 0
	for ; len(o.tail)-drop > o.spec.TailLines || o.bytes > o.spec.TailBytes; drop++ {
		o.bytes -= len(o.tail[drop].Text)
		o.tail[drop] = Line{}
	}
	o.tail = o.tail[drop:]
	if !o.match && o.spec.ReadyLine != nil && o.spec.ReadyLine.Match(l.Text) {
		o.match = true
		close(o.matched)
	}
	if o.queue != nil {
		o.queue.put(l) // under the lock: the sink sees Seq ascending
	}
}

func (o *output) snapshot() []Line {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.tail)
}

// drain ends reading: at the end of both pipes, or when timeout fires, and then it names who still
// holds one of them. What the sink has not taken by then is dropped.
func (o *output) drain(timeout <-chan time.Time) (holders []Process, dropped Dropped) {
	eof := make(chan struct{})
	go func() { o.read.Wait(); close(eof) }()
	expired := false
	select {
	case <-eof:
	case <-timeout:
		expired = true
		holders = pipeHolders(o.readers)
		for _, r := range o.readers {
			_ = r.SetReadDeadline(time.Now())
		}
		<-eof
	}
	closeAll(o.readers)
	if o.queue == nil {
		return holders, dropped
	}
	o.queue.close()
	if !expired {
		select {
		case <-o.queue.ended:
		case <-timeout:
		}
	}
	return holders, o.queue.abandon()
}
