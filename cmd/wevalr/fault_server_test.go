package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wevalr/wevalr/host/envserver"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// habits is how the fault server works while nothing is injected; it reads them from the file
// "habits.json" in its folder, so that its command line stays the same.
type habits struct {
	LatencyMS  int  // of a reply, at most
	HoldAfter  int  // replies, until the file "told" is there or the rollout is cancelled; 0 = never
	Grandchild bool // leaves a setsid process with another parent
	IgnoreTerm bool
	ReplyBytes int  // of padding in each completion
	Quiet      bool // keeps no ledger
}

// faultServer is the program `faultserver ADDRESS MARK`: an env-server that adds right and does what it
// is told over the socket "ctl" in its folder, a line each: `exit 23`, `signal 9`, `hangup`, `half exit`,
// `half hangup`, `garbage`, `slow 500`, `refuse`, `badreply`. The file "ledger" gets a line for each
// request that it accepts and for each end of one.
type faultServer struct {
	habits
	ledger io.Writer
	runs   atomic.Int64
	wire   atomic.Pointer[string] // what the next bytes to the client suffer
	next   atomic.Pointer[string] // what the next run suffers
}

func faultServerMain() {
	s := &faultServer{ledger: io.Discard}
	b, err := os.ReadFile("habits.json")
	if err == nil {
		err = json.Unmarshal(b, &s.habits)
	}
	if err == nil && !s.Quiet {
		s.ledger, err = os.OpenFile("ledger", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(64)
	}
	s.note("start")
	s.signals()
	if s.Grandchild {
		// the shell in the middle ends at once, and what it started is in a session of its own
		loop := exec.Command("sh", "-c", `setsid sh -c 'trap "" TERM; while :; do sleep 1; done' "$0" >/dev/null 2>&1 &`, os.Args[2])
		if err := loop.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(64)
		}
	}
	inner, err := zmqio.Listen("ipc://"+filepath.Join(os.Getenv("TMPDIR"), "i"), s.handle, zmqio.ServerOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(64)
	}
	s.proxy(os.Args[1], inner.Endpoint())
}

// note writes one line to the ledger; lines of several processes do not mix.
func (s *faultServer) note(format string, args ...any) {
	fmt.Fprintf(s.ledger, "%d %s\n", os.Getpid(), fmt.Sprintf(format, args...))
}

func (s *faultServer) signals() {
	if s.IgnoreTerm {
		signal.Ignore(syscall.SIGTERM)
		return
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	go func() {
		s.note("stopped by %v", <-stop)
		os.Exit(0)
	}()
}

// obey reads what is to be suffered.
func (s *faultServer) obey(c net.Conn) {
	fmt.Fprintln(c, os.Getpid())
	for in := bufio.NewScanner(c); in.Scan(); {
		order := in.Text()
		verb, arg, _ := strings.Cut(order, " ")
		n, _ := strconv.Atoi(arg)
		switch verb {
		case "exit":
			fmt.Fprintln(os.Stderr, "faultserver: last words")
			os.Exit(n)
		case "signal":
			_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		case "refuse", "badreply":
			s.next.Store(&order)
		default:
			s.wire.Store(&order)
		}
	}
}

func (s *faultServer) handle(ctx context.Context, req *zmqio.Request) []byte {
	if reply, _ := envserver.Answer(req); reply != nil {
		return reply
	}
	if req.Method != "run" {
		return wire.EncodeFailure(fmt.Sprintf("unknown method '%s'", req.Method))
	}
	run, err := wire.DecodeRunRequest(req.Payload)
	if err != nil || run.Wevalr == nil {
		return wire.EncodeFailure(fmt.Sprintf("ValueError: no rollout: %v", err))
	}
	id := fmt.Sprintf("%s#%d/%d", run.Wevalr.Key, run.Wevalr.Index, run.Wevalr.Try)
	s.note("accept %s", id)
	if !s.work(ctx) {
		s.note("cancelled %s", id)
		return wire.EncodeFailure("CancelledError: cancelled")
	}
	defer s.note("replied %s", id)
	if order := s.next.Swap(nil); order != nil {
		if *order == "refuse" {
			return wire.EncodeFailure("RuntimeError: no luck")
		}
		return []byte("\xc1\xffno msgpack")
	}
	payload, err := answerSum(req, strings.Repeat("x", s.ReplyBytes))
	if err != nil {
		return wire.EncodeFailure("ValueError: " + err.Error())
	}
	return payload
}

// work takes its time; false when it was cancelled meanwhile.
func (s *faultServer) work(ctx context.Context) bool {
	n := int(s.runs.Add(1))
	for s.HoldAfter > 0 && n > s.HoldAfter {
		if _, err := os.Stat("told"); err == nil {
			break
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	select {
	case <-time.After(time.Duration(rand.IntN(s.LatencyMS+1)) * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

// proxy carries bytes between the one client and the inner server, so that the wire can be hurt too.
func (s *faultServer) proxy(address, inner string) {
	network, addr := "tcp", strings.TrimPrefix(address, "tcp://")
	if path, ok := strings.CutPrefix(address, "ipc://"); ok {
		network, addr = "unix", path
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(64)
	}
	if c, err := net.Dial("unix", "ctl"); err == nil { // else nobody injects
		go s.obey(c)
	}
	for {
		outer, err := l.Accept()
		if err != nil {
			return
		}
		in, err := net.Dial("unix", strings.TrimPrefix(inner, "ipc://"))
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(in, outer); _ = in.Close() }()
		go func() { s.carry(outer, in); _ = outer.Close() }()
	}
}

// carry copies the server's bytes to the client, hurt as ordered, until one of the two ends.
func (s *faultServer) carry(outer, in net.Conn) {
	buf := make([]byte, 64<<10)
	var slow time.Time
	for {
		n, err := in.Read(buf)
		chunk := buf[:n]
		if order := s.wire.Swap(nil); order != nil && n > 0 {
			verb, arg, _ := strings.Cut(*order, " ")
			switch verb {
			case "half":
				_, _ = outer.Write(chunk[:n/2])
				if arg == "exit" {
					os.Exit(23)
				}
				return
			case "hangup":
				return
			case "garbage":
				chunk = []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xffgarbage")
			case "slow":
				ms, _ := strconv.Atoi(arg)
				slow = time.Now().Add(time.Duration(ms) * time.Millisecond)
			}
		}
		for len(chunk) > 0 && time.Now().Before(slow) {
			part := min(len(chunk), 1+rand.IntN(64))
			if _, err := outer.Write(chunk[:part]); err != nil {
				return
			}
			chunk = chunk[part:]
			<-time.After(time.Millisecond)
		}
		if _, werr := outer.Write(chunk); werr != nil || err != nil {
			return
		}
	}
}
