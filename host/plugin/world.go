package plugin

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
)

// The virtual clock: it starts at the same moment in every instance, moves by a step at each reading
// and by the whole length of a sleep. Calls start an hour after the guest's start, so that nothing
// that a guest remembers of its start lies in a call's future.
const (
	epoch     = int64(1640995200) // 2022-01-01T00:00:00Z
	clockStep = int64(time.Microsecond)
	callStart = int64(time.Hour)
	ringBytes = 64 << 10
)

// world is everything of the outside that an instance can see, besides its imports.
type world struct {
	now    int64 // nanoseconds since epoch
	first  int64 // where calls start
	seeded *rand.ChaCha8
	stderr ring

	environ []string // NAME=value, sorted
	fds     *descriptors

	grantClock, grantRandom bool // what the operator granted
	realClock, realRandom   bool // what this call gets
}

// newWorld is the world of a new instance. vars and trees are what is granted of them.
func newWorld(g Grants, vars map[string]string, trees map[string]tree) *world {
	w := &world{
		first: callStart, grantClock: g.Clock, grantRandom: g.Random, stderr: ring{max: ringBytes},
		fds: newDescriptors(trees),
	}
	for _, name := range sortedKeys(vars) {
		w.environ = append(w.environ, name+"="+vars[name])
	}
	w.seed(0)
	return w
}

// begin resets clock, randomness and log for a call. Scorers and init get neither real clock nor
// entropy, whatever is granted.
func (w *world) begin(op abi.Op, seed int64) {
	live := op == abi.OpTasks || op == abi.OpRollout
	w.realClock, w.realRandom = w.grantClock && live, w.grantRandom && live
	w.stderr.reset()
	if op == abi.OpInit {
		return
	}
	w.now = w.first
	w.seed(seed)
}

// initialized makes calls start after everything that the guest has seen so far.
func (w *world) initialized() { w.first = max(callStart, w.now+int64(time.Second)) }

func (w *world) seed(seed int64) {
	h := sha256.New()
	h.Write([]byte("wevalr plugin random\x00"))
	_ = binary.Write(h, binary.BigEndian, seed)
	w.seeded = rand.NewChaCha8([32]byte(h.Sum(nil)))
}

// Read is the guest's random stream.
func (w *world) Read(p []byte) (int, error) {
	if w.realRandom {
		return crand.Read(p)
	}
	return w.seeded.Read(p)
}

func (w *world) tick() int64 {
	w.now += clockStep
	return w.now
}

func (w *world) walltime() (sec int64, nsec int32) {
	t := time.Now()
	if !w.realClock {
		t = time.Unix(epoch, w.tick())
	}
	return t.Unix(), int32(t.Nanosecond())
}

// nanotime is monotonic. Even with the real clock granted it starts where the virtual one stood.
func (w *world) nanotime() int64 {
	if w.realClock {
		return w.first + int64(time.Since(time.Unix(epoch, 0)))
	}
	return w.tick()
}

// sleep takes no time: it only moves the clock. With the real clock granted it sleeps a slice, after
// which the guest looks again: the call's end must be seen in between.
func (w *world) sleep(ns int64) {
	if w.realClock {
		time.Sleep(min(time.Duration(ns), 10*time.Millisecond))
		return
	}
	if ns > 0 && w.now < 1<<62-ns {
		w.now += ns
	}
}
