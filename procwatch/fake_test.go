package procwatch

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// fake is a body that dies when the test says so.
type fake struct {
	died   chan struct{}
	isDead atomic.Bool

	mu   sync.Mutex
	sigs []syscall.Signal
}

func newFake() *fake { return &fake{died: make(chan struct{})} }

func (f *fake) await() bool { <-f.died; return true }

func (f *fake) dead() bool { return f.isDead.Load() }

func (f *fake) bury() death { return death{known: true} }

func (f *fake) signal(sig syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sigs = append(f.sigs, sig)
}

func (f *fake) sent() []syscall.Signal {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sigs)
}

// fakeProc returns a Proc around b; the caller runs it.
func fakeProc(b body) *Proc {
	return &Proc{
		spec: Spec{Grace: time.Millisecond, KillWait: time.Millisecond, DrainTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)},
		pid:  os.Getpid(), start: time.Now(), body: b, out: &output{matched: make(chan struct{})},
		exiting: make(chan struct{}), done: make(chan struct{}),
		ready: make(chan struct{}), notReady: make(chan struct{}),
		hurry: make(chan struct{}), stuck: make(chan struct{}),
	}
}
