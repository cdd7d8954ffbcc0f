package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"

	"github.com/wevalr/wevalr/host/failure"
)

// table is what a run knows: its tasks by ordinal, and one cell a rollout. The journal's lines are
// applied to it in the same way when they are read and when they are written.
type table struct {
	mu       sync.RWMutex
	keys     []string
	offs     []int64 // offs[i] is where task i's line begins; one more at the end
	ordinals map[string]int32
	set      hash.Hash // over all tasks
	cells    [][]cell

	kinds    []kind
	kindIDs  map[[2]string]uint16
	usage    Usage
	attempts int
	exits    []Generation
	rewarded bool // a finish had rewards

	scores scoreIndex
}

// cell is a rollout in 32 bytes.
type cell struct {
	off     int64
	scored  uint64 // a bit for each scorer that has a line
	len     uint32
	crc     uint32
	tries   uint16
	kind    uint16 // position in kinds
	outcome uint8  // position in outcomes; 0: none yet
	phase   phase
}

// phase is where the current try is; idle after its finish, and after its attempt ended without one.
type phase uint8

const (
	idle phase = iota
	inFlight
	committing
)

// maxEpisode is the longest episode line: cell.len has 32 bits.
const maxEpisode = 1<<32 - 2

// outcomes gives each outcome its number in a cell.
func outcomes() [5]failure.Outcome {
	return [5]failure.Outcome{"", failure.Completed, failure.Limit, failure.Errored, failure.Dropped}
}

type kind struct {
	source  failure.Source
	name    string
	example string
}

func newTable() *table {
	return &table{
		offs: []int64{0}, ordinals: map[string]int32{}, set: sha256.New(),
		kinds: []kind{{}}, kindIDs: map[[2]string]uint16{}, scores: newScoreIndex(),
	}
}

// addTask appends a task whose line ends at end. The caller holds mu and has checked the key.
func (t *table) addTask(key, sum string, end int64) {
	t.ordinals[key] = int32(len(t.keys))
	t.keys = append(t.keys, key)
	t.offs = append(t.offs, end)
	t.cells = append(t.cells, nil)
	t.set.Write([]byte(key + "\x00" + sum + "\n"))
}

func (t *table) setHash() string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return hex.EncodeToString(t.set.Sum(nil))
}

// at gives a rollout's cell when there is one. The caller holds mu.
func (t *table) at(task, index int) *cell {
	if task < 0 || task >= len(t.cells) || index < 0 || index >= len(t.cells[task]) {
		return nil
	}
	return &t.cells[task][index]
}

// begin is the dispatch of a try: the first, or the one after a try that did not finish.
func (t *table) begin(key string, index, try int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	refuse := func(why string) error { return &StateError{key, index, try, why} }
	task, ok := t.ordinals[key]
	if !ok {
		return refuse("no such task")
	}
	if index < 0 || index >= maxIndex {
		return refuse("index out of range")
	}
	if n := index + 1 - len(t.cells[task]); n > 0 {
		t.cells[task] = append(t.cells[task], make([]cell, n)...)
	}
	c := &t.cells[task][index]
	switch {
	case outcomes()[c.outcome].Finished():
		return refuse("dispatched after it had finished")
	case c.phase != idle:
		return refuse("dispatched while in flight")
	case try != int(c.tries)+1 || try > 1<<16-1:
		return refuse("dispatched out of turn")
	}
	c.tries, c.phase = uint16(try), inFlight
	return nil
}

// claim takes the try for its one finish.
func (t *table) claim(f *Finish) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	refuse := func(why string) error { return &StateError{f.Key, f.Index, f.Try, why} }
	task, ok := t.ordinals[f.Key]
	if !ok {
		return refuse("no such task")
	}
	c := t.at(int(task), f.Index)
	switch {
	case c == nil || f.Try < 1 || f.Try > int(c.tries):
		return refuse("finished without its dispatch")
	case f.Try < int(c.tries) || c.phase == committing || c.outcome != 0 && c.phase == idle:
		return refuse("finished twice")
	case c.phase == idle:
		return refuse("finished after its attempt had ended")
	}
	c.phase = committing
	return nil
}

// settle ends a claimed try: with f on disk, or with ok false as if claim had not been.
func (t *table) settle(f *Finish, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.at(int(t.ordinals[f.Key]), f.Index)
	if !ok {
		c.phase = inFlight
		return
	}
	c.phase = idle
	c.off, c.len, c.crc = f.Episode.Off, uint32(f.Episode.Len), f.Episode.CRC
	for i, o := range outcomes() {
		if o == f.Outcome {
			c.outcome = uint8(i)
		}
	}
	c.kind = 0
	if f.Failure != nil && !f.Outcome.Finished() {
		c.kind = t.kind(f.Failure)
	}
	t.usage = t.usage.plus(f.Usage)
	t.rewarded = t.rewarded || len(f.Rewards) > 0
}

// MaxKinds bounds the kinds of failure that are told apart, of rollouts and of scores each: plugins name their
// own. What comes later counts as plugin/other.
const MaxKinds = 1000

// kind numbers a failure's kind; its first message is the example. The caller holds mu.
func (t *table) kind(f *failure.Failure) uint16 {
	k := kind{f.Source, f.Kind, clip(f.Message, 500)}
	if _, ok := t.kindIDs[[2]string{string(k.source), k.name}]; !ok && len(t.kinds) >= MaxKinds {
		k.source, k.name = failure.Plugin, "other"
	}
	id, ok := t.kindIDs[[2]string{string(k.source), k.name}]
	if !ok {
		id = uint16(len(t.kinds))
		t.kindIDs[[2]string{string(k.source), k.name}] = id
		t.kinds = append(t.kinds, k)
	}
	return id
}

// endAttempt forgets what was in flight: its attempt is over.
func (t *table) endAttempt() {
	for _, cells := range t.cells {
		for i := range cells {
			cells[i].phase = idle
		}
	}
}

// clip cuts a text at a rune's border at most n bytes in.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
