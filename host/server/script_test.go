package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wevalr/wevalr/host/envserver"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// script is what the scripted env-server does beside its runs.
type script struct {
	Mark       string
	Early      string // dies so before it is ready
	Silent     bool   // never listens
	IgnoreTerm bool
	FloodKiB   int    // says so much when it starts
	Holder     bool   // starts a setsid process that keeps its output open
	Beacon     string // file that gets a line for each life
	Lives      int    // with Beacon and Early: so many lives become ready
	Workers    int    // processes of a pool; nobody waits for them
	WorkerDies string // the first worker dies so when it is first asked for
	ProbeHangs bool   // an unknown method is not answered
}

// task is what it does with a run.
type task struct {
	Do   string // a case of scripted.run
	Name string `json:",omitempty"`
	How  string `json:",omitempty"` // of die and cut: an exit code, kill, segv
	When int    `json:",omitempty"` // of die: so many runs are held
	Mid  bool   `json:",omitempty"` // of cut: in the middle of the reply, not after it
	Pad  string `json:",omitempty"`
}

// scripted is the env-server while it serves. Its counters are gates: a run waits on cond for what
// others do.
type scripted struct {
	script
	mu       sync.Mutex
	cond     *sync.Cond
	held     int
	torndown int
	probed   int
	nudges   int
	finished bool
	workers  []io.Writer
	cut      atomic.Pointer[cut]
}

// cut acts as soon as a connection has carried these bytes to the client.
type cut struct {
	marker []byte
	act    func(outer, inner net.Conn)
}

func (s script) serve(address string) int {
	if s.Beacon != "" {
		f, err := os.OpenFile(s.Beacon, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, os.Getpid())
		_ = f.Close()
		if b, _ := os.ReadFile(s.Beacon); bytes.Count(b, []byte("\n")) <= s.Lives {
			s.Early = ""
		}
	}
	if s.IgnoreTerm {
		signal.Ignore(syscall.SIGTERM)
	} else {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		go func() { <-term; os.Exit(0) }()
	}
	if s.Holder {
		s.hold()
	}
	s.flood()
	if s.Early != "" {
		die(s.Early)
	}
	if s.Silent {
		hang()
	}
	v := &scripted{script: s}
	v.cond = sync.NewCond(&v.mu)
	v.employ()
	inner, err := zmqio.Listen("ipc://"+filepath.Join(os.Getenv("TMPDIR"), "i"), v.handle, zmqio.ServerOptions{})
	if err != nil {
		panic(err)
	}
	v.proxy(address, inner.Endpoint())
	return 0
}

func (s script) flood() {
	w := bufio.NewWriterSize(os.Stdout, 64<<10)
	for i := range s.FloodKiB {
		fmt.Fprintf(w, "%08d %s\n", i, strings.Repeat("x", 1014))
	}
	_ = w.Flush()
}

// hold leaves a process behind that keeps the output open, and that neither our session nor our
// descent leads to.
func (s script) hold() { s.orphan("output") }

func (s script) orphan(what string, files ...*os.File) {
	cmd := exec.Command(os.Args[0], "helper:orphan", s.Mark, what)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stderr, os.Stderr, files // one pipe: lines keep their order
	if err := cmd.Run(); err != nil {
		panic(err)
	}
}

// orphanMain leaves a holder of the output, or of descriptor 3.
func orphanMain(mark, what string) int {
	cmd := exec.Command(os.Args[0], "helper:holder", mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if what == "output" {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	} else {
		cmd.ExtraFiles = []*os.File{os.NewFile(3, what)}
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println("holder", cmd.Process.Pid)
	return 0
}

// die ends this process: by its own exit, or by a signal that it sends to itself.
func die(how string) {
	fmt.Fprintln(os.Stderr, "last words", how)
	switch how {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		hang()
	case "segv": // a Go program would turn it into a panic
		err := syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -SEGV $$"}, os.Environ())
		panic(err)
	}
	code, err := strconv.Atoi(how)
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

func (v *scripted) handle(ctx context.Context, req *zmqio.Request) []byte {
	if reply, _ := envserver.Answer(req); reply != nil {
		return reply
	}
	if req.Method != "run" {
		v.mu.Lock()
		v.probed++
		v.mu.Unlock()
		if v.WorkerDies != "" {
			_, _ = fmt.Fprintln(v.workers[0], v.WorkerDies)
		}
		if v.ProbeHangs {
			<-ctx.Done()
		}
		return wire.EncodeFailure(fmt.Sprintf("unknown method '%s'", req.Method))
	}
	q, err := wire.DecodeRunRequest(req.Payload)
	if err != nil {
		return wire.EncodeFailure(err.Error())
	}
	var do task
	text, _ := q.TaskData["order"].(string)
	if err := json.Unmarshal([]byte(text), &do); err != nil {
		return wire.EncodeFailure(err.Error())
	}
	return v.run(ctx, req, do)
}

func (v *scripted) run(ctx context.Context, req *zmqio.Request, do task) []byte {
	switch do.Do {
	case "reply":
		_ = req.Delta(opening(do.Name))
		return closing(do.Name)
	case "refuse":
		return wire.EncodeFailure("ValueError: no")
	case "delta": // streams the trace and then says nothing more
		_ = req.Delta(opening(do.Name))
		return v.hold(ctx)
	case "hold":
		return v.hold(ctx)
	case "deaf": // as a run in a dead worker: nothing ends it, no cancel either
		_ = req.Delta(opening(do.Name))
		return v.hold(context.WithoutCancel(ctx))
	case "wait": // for so many held runs
		v.await(do.When)
		return wire.EncodeFailure("held")
	case "stats":
		v.mu.Lock()
		defer v.mu.Unlock()
		return wire.EncodeFailure(fmt.Sprintf("held %d torndown %d probed %d", v.held, v.torndown, v.probed))
	case "stream": // a delta for each nudge, and the reply after the last
		return v.stream(ctx, req, do.Name)
	case "nudge", "finish":
		v.mu.Lock()
		defer v.mu.Unlock()
		v.nudges++
		v.finished = do.Do == "finish"
		v.cond.Broadcast()
		return wire.EncodeFailure("nudged")
	case "dismiss": // the first worker dies
		_, _ = fmt.Fprintln(v.workers[0], do.How)
		return wire.EncodeFailure("dismissed")
	case "die":
		v.await(do.When)
		die(do.How)
	case "leak": // dies, and its connection stays open in a process that nobody finds
		return v.after(req, do, false, func(outer, _ net.Conn) {
			f, err := outer.(*net.UnixConn).File()
			if err != nil {
				panic(err)
			}
			v.orphan("socket", f)
			die(do.How)
		})
	case "hangup":
		return v.after(req, do, false, func(outer, _ net.Conn) { _ = outer.Close() })
	case "kind": // an answer of a kind that is not known
		v.cut.Store(&cut{marker: opening(do.Name), act: func(outer, _ net.Conn) {
			b := append([]byte{1, byte(len(req.ID))}, req.ID...) // ZMTP's short frames, all but the last with MORE
			b = append(b, "\x01\x05final\x00\x01\x80"...)
			_, _ = outer.Write(b)
		}})
		_ = req.Delta(opening(do.Name))
		return v.hold(ctx)
	case "odd": // a reply of a form that is not known
		_ = req.Delta(opening(do.Name))
		return wire.EncodeOK(nil)
	case "cut":
		return v.after(req, do, do.Mid, func(net.Conn, net.Conn) { die(do.How) })
	}
	return wire.EncodeFailure("unknown order " + do.Do)
}

// after replies, and lets act follow as soon as the reply, or half of it, is written.
func (v *scripted) after(req *zmqio.Request, do task, mid bool, act func(outer, inner net.Conn)) []byte {
	b := closing(do.Name)
	marker := b
	if mid {
		marker = b[:len(b)/2]
	}
	v.cut.Store(&cut{marker: marker, act: act})
	_ = req.Delta(opening(do.Name))
	return b
}

// hold keeps a run until it is cancelled, and then takes it down.
func (v *scripted) hold(ctx context.Context) []byte {
	v.mu.Lock()
	v.held++
	v.cond.Broadcast()
	v.mu.Unlock()
	<-ctx.Done()
	v.mu.Lock()
	v.held--
	v.torndown++
	v.mu.Unlock()
	return wire.EncodeFailure("CancelledError: ")
}

func (v *scripted) stream(ctx context.Context, req *zmqio.Request, name string) []byte {
	_ = req.Delta(opening(name))
	stop := context.AfterFunc(ctx, v.cond.Broadcast)
	defer stop()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held++
	v.cond.Broadcast()
	for seen := v.nudges; ; seen++ {
		for v.nudges == seen && ctx.Err() == nil {
			v.cond.Wait()
		}
		if v.finished || ctx.Err() != nil {
			v.held--
			return closing(name)
		}
		_ = req.Delta(wire.Delta{Trace: "t-" + name}.Encode())
	}
}

// employ starts the workers of a pool, whose command line is that of Python's multiprocessing.
func (v *scripted) employ() {
	for range v.Workers {
		cmd := exec.Command(os.Args[0], "helper:worker", v.Mark, "from multiprocessing.spawn import spawn_main; spawn_main()")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			panic(err)
		}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		v.workers = append(v.workers, in)
	}
}

// workerMain dies as its first line says.
func workerMain() int {
	how, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return 0
	}
	die(strings.TrimSpace(how))
	return 0
}

func (v *scripted) await(held int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.held < held {
		v.cond.Wait()
	}
}

// proxy carries bytes between clients and the inner server, so that this process can die at a chosen
// byte.
func (v *scripted) proxy(address, inner string) {
	network, addr := "tcp", strings.TrimPrefix(address, "tcp://")
	if path, ok := strings.CutPrefix(address, "ipc://"); ok {
		network, addr = "unix", path
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		panic(err)
	}
	for {
		outer, err := l.Accept()
		if err != nil {
			panic(err)
		}
		in, err := net.Dial("unix", strings.TrimPrefix(inner, "ipc://"))
		if err != nil {
			panic(err)
		}
		go func() { _ = v.carry(in, outer, false); _ = in.Close() }()
		go func() { _ = v.carry(outer, in, true); _ = outer.Close() }()
	}
}

func (v *scripted) carry(dst, src net.Conn, cutting bool) error {
	var seen []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		chunk := buf[:n]
		if c := v.cut.Load(); cutting && c != nil {
			before := len(seen)
			seen = append(seen, chunk...)
			if i := bytes.Index(seen, c.marker); i >= 0 {
				_, _ = dst.Write(chunk[:i+len(c.marker)-before])
				c.act(dst, src)
				return nil
			}
		}
		if _, werr := dst.Write(chunk); werr != nil {
			return werr
		}
		if err != nil {
			return err
		}
	}
}

func trace(name string) *wire.Trace {
	return &wire.Trace{
		Version: 1, ID: "t-" + name, IsCompleted: true, OK: true, StopCondition: "agent_completed",
		Nodes: []wire.Node{{Parent: -1, Sampled: true, Message: wire.Message{Role: "assistant", Content: wire.Text("said " + name)}}},
	}
}

// opening is the one delta of a run.
func opening(name string) []byte {
	t := trace(name)
	return wire.Delta{Trace: t.ID, Open: t, Nodes: t.Nodes, Set: t}.Encode()
}

// closing is the reply of a run.
func closing(name string) []byte {
	b, err := wire.EncodeRunReply(&wire.Episode{ID: name, OK: true, Traces: []wire.Trace{*trace(name)}})
	if err != nil {
		panic(err)
	}
	return b
}

var errHostKilled = errors.New("the host was to be killed")

// hostMain is a wevalr that is killed while its env-server runs.
func hostMain(args []string) int {
	var sp Spec
	if err := json.Unmarshal([]byte(args[0]), &sp); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errHostKilled)
	defer cancel()
	s, err := Start(ctx, sp)
	if err != nil {
		panic(err)
	}
	fmt.Println(s.dir.path)
	hang()
	return 0
}
