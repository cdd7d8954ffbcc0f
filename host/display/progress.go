package display

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wevalr/wevalr/host/failure"
)

// Modes of a display.
const (
	Plain = "plain"
	JSON  = "json"
	None  = "none"
)

// Options of a display. The zero value shows plain lines every 5 s.
type Options struct {
	Mode     string
	Interval time.Duration
	Planned  int // rollouts in the plan
	Finished int // of them, finished by earlier attempts
}

// patience is how long a notice waits for a slow terminal.
const patience = 100 * time.Millisecond

// Progress counts what happens and prints it now and then. Safe for concurrent use.
type Progress struct {
	opt   Options
	notes chan note
	stop  chan struct{}
	done  chan struct{} // closed when the writing goroutine has ended

	drain   chan struct{}
	drained sync.Once

	out sync.Mutex // held while w is written
	w   io.Writer

	mu       sync.Mutex
	start    time.Time
	finished int // completed or limit, earlier attempts included
	ended    int // in this attempt, whatever the outcome
	errors   int
	dropped  int
	retried  int
	flying   map[flight]time.Time
	kinds    map[string]bool // of failures that an example was shown of
	means    map[string]*mean
}

// What is kept and shown of names that plugins make: examples of failures, means, means in a line.
const (
	maxExamples = 100
	maxMeans    = 256
	maxShown    = 8
)

// note is a line of its own on its way to the terminal.
type note struct {
	text    string
	written chan struct{}
}

type flight struct {
	key   string
	index int
}

type mean struct {
	sum float64
	n   int
}

// Start begins to show a run on w, until Close.
func Start(w io.Writer, opt Options) *Progress {
	if opt.Interval <= 0 {
		opt.Interval = 5 * time.Second
	}
	p := &Progress{
		w: w, opt: opt, notes: make(chan note, 64), stop: make(chan struct{}), done: make(chan struct{}), drain: make(chan struct{}), start: time.Now(),
		finished: opt.Finished, flying: map[flight]time.Time{}, kinds: map[string]bool{}, means: map[string]*mean{},
	}
	go p.loop()
	return p
}

func (p *Progress) loop() {
	defer close(p.done)
	ticker := time.NewTicker(p.opt.Interval)
	defer ticker.Stop()
	drain := p.drain
	for {
		select {
		case <-ticker.C:
			if p.opt.Mode != None {
				p.print()
			}
		case <-drain:
			ticker.Reset(min(p.opt.Interval, time.Second))
			drain = nil
		case n := <-p.notes:
			p.say(n)
		case <-p.stop:
			p.flush()
			p.print()
			return
		}
	}
}

// Draining says that nothing new is dispatched: what is still running is counted down every second.
func (p *Progress) Draining() { p.drained.Do(func() { close(p.drain) }) }

// Close prints what waits and the last state, and ends the display. It is called once.
func (p *Progress) Close() {
	close(p.stop)
	<-p.done
}

// Dispatched says that a rollout is on its way.
func (p *Progress) Dispatched(key string, index int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying[flight{key, index}] = time.Now()
}

// Ended says how a rollout's last try ended. The first failure of each kind is printed as an example.
func (p *Progress) Ended(key string, index int, outcome failure.Outcome, f *failure.Failure) {
	p.mu.Lock()
	delete(p.flying, flight{key, index})
	p.ended++
	var example string
	switch {
	case outcome.Finished():
		p.finished++
	case outcome == failure.Dropped && f == nil: // never sent: the summary counts it as never run
	case outcome == failure.Dropped:
		p.dropped++
	default:
		p.errors++
	}
	if f != nil && f.Source != failure.Cancelled {
		kind := string(f.Source) + ": " + f.Kind
		if !p.kinds[kind] && len(p.kinds) < maxExamples {
			p.kinds[kind] = true
			example = fmt.Sprintf("error in %s#%d: %s", key, index, failure.Brief(f.Error()))
		}
	}
	p.mu.Unlock()
	if example == "" {
		return
	}
	select {
	case p.notes <- note{text: example}:
	default: // a terminal that is so slow shows the counts
	}
}

// Scored adds a value to a scorer's mean so far; nil (skipped) does not count.
func (p *Progress) Scored(scorer string, value *float64) {
	if value == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.means[scorer]
	if m == nil && len(p.means) == maxMeans {
		return
	}
	if m == nil {
		m = &mean{}
		p.means[scorer] = m
	}
	m.sum += *value
	m.n++
}

// Retried says that a rollout gets another try.
func (p *Progress) Retried() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retried++
}

// Notice prints one line of its own: at once, if the terminal takes it within 100 ms, else when it does.
func (p *Progress) Notice(text string) {
	n := note{text, make(chan struct{})}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case p.notes <- n:
	case <-late.C:
		return
	}
	select {
	case <-n.written:
	case <-p.done:
		p.flush()
	case <-late.C:
	}
}

// flush prints the notes that wait.
func (p *Progress) flush() {
	for {
		select {
		case n := <-p.notes:
			p.say(n)
		default:
			return
		}
	}
}

func (p *Progress) say(n note) {
	switch p.opt.Mode {
	case None:
	case JSON:
		p.emit(map[string]any{"t": "notice", "text": n.text})
	default:
		p.write([]byte(n.text + "\n"))
	}
	if n.written != nil {
		close(n.written)
	}
}

func (p *Progress) print() {
	p.mu.Lock()
	s := p.state()
	p.mu.Unlock()
	switch p.opt.Mode {
	case None:
	case JSON:
		p.emit(s.json())
	default:
		p.write([]byte(s.line() + "\n"))
	}
}

func (p *Progress) emit(v map[string]any) {
	if b, err := json.Marshal(v); err == nil {
		p.write(append(b, '\n'))
	}
}

// write is best effort, as progress is.
func (p *Progress) write(b []byte) {
	p.out.Lock()
	defer p.out.Unlock()
	_, _ = p.w.Write(b)
}

// state is what one line shows.
type state struct {
	planned, finished, running, errors, dropped, retried int
	rate                                                 float64
	eta, oldest                                          time.Duration
	oldestKey                                            string // KEY#INDEX
	means                                                map[string]float64
}

func (p *Progress) state() state {
	elapsed := time.Since(p.start)
	s := state{
		planned: p.opt.Planned, finished: p.finished, running: len(p.flying), errors: p.errors,
		dropped: p.dropped, retried: p.retried, means: make(map[string]float64, len(p.means)),
	}
	if elapsed > 0 {
		s.rate = float64(p.ended) / elapsed.Seconds()
	}
	if left := s.planned - s.finished - s.errors - s.dropped; left > 0 && s.rate > 0 {
		s.eta = time.Duration(float64(left) / s.rate * float64(time.Second)).Round(time.Second)
	}
	for f, since := range p.flying {
		if age := time.Since(since); age > s.oldest {
			s.oldest, s.oldestKey = age, fmt.Sprintf("%s#%d", f.key, f.index)
		}
	}
	for name, m := range p.means {
		if v := m.sum / float64(m.n); !math.IsInf(v, 0) {
			s.means[name] = v
		}
	}
	return s
}

func (s state) line() string {
	parts := []string{
		fmt.Sprintf("%d/%d finished", s.finished, s.planned),
		fmt.Sprintf("%d running", s.running),
		fmt.Sprintf("%d errors", s.errors),
		fmt.Sprintf("%.1f/s", s.rate),
	}
	if s.dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d cancelled", s.dropped))
	}
	if s.retried > 0 {
		parts = append(parts, fmt.Sprintf("%d retried", s.retried))
	}
	if s.eta > 0 {
		parts = append(parts, "ETA "+s.eta.String())
	}
	if s.oldest > time.Second {
		parts = append(parts, fmt.Sprintf("oldest in flight %v (%s)", s.oldest.Round(time.Second), s.oldestKey))
	}
	for i, name := range slices.Sorted(maps.Keys(s.means)) {
		if i == maxShown {
			parts = append(parts, fmt.Sprintf("and %d more", len(s.means)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %.3f so far", name, s.means[name]))
	}
	return strings.Join(parts, " · ")
}

func (s state) json() map[string]any {
	return map[string]any{
		"t": "progress", "planned": s.planned, "finished": s.finished, "running": s.running, "errors": s.errors,
		"cancelled": s.dropped, "retried": s.retried, "per_second": s.rate, "eta_s": s.eta.Seconds(), "oldest_s": s.oldest.Seconds(), "oldest": s.oldestKey,
		"means": s.means,
	}
}
