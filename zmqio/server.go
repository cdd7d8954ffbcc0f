package zmqio

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// Server answers requests on one endpoint. It is made by [Listen] and must be closed.
type Server struct {
	opt      ServerOptions
	handler  Handler
	listener net.Listener
	file     *socketFile // of ipc, else nil
	endpoint string
	stop     context.CancelCauseFunc
	conns    chan struct{} // a place each
	places   chan struct{} // of running runs; nil: no bound
	wg       sync.WaitGroup
	closed   sync.Once

	mu   sync.Mutex
	runs map[string]*Request // unanswered, of all connections
}

// Listen serves "ipc://path" or "tcp://host:port" (port 0 and host "*" work; [Server.Endpoint] tells
// what they became).
//
// An ipc path lies in a directory of this user with mode 0700, made if it is missing, and is shorter
// than 100 bytes. A socket that a dead server left there is replaced, one of a living server is not
// ([*InUseError]); path.lock is held meanwhile. Only processes of [ServerOptions.AllowUID] are
// served, on systems that tell. Tcp has no such check: whoever can reach the port is served.
func Listen(endpoint string, h Handler, opt ServerOptions) (*Server, error) {
	opt = opt.withDefaults(os.Geteuid())
	network, addr, err := split(endpoint)
	if err != nil {
		return nil, err
	}
	s := &Server{opt: opt, handler: h, conns: make(chan struct{}, opt.MaxConns), runs: map[string]*Request{}}
	if opt.MaxRuns > 0 {
		s.places = make(chan struct{}, opt.MaxRuns)
	}
	if network == "unix" {
		s.endpoint = endpoint
		s.file, s.listener, err = listenFile(addr)
	} else {
		var lc net.ListenConfig
		s.listener, err = lc.Listen(context.Background(), network, addr)
		if err == nil {
			s.endpoint = "tcp://" + s.listener.Addr().String()
		}
	}
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	s.stop = stop
	s.wg.Go(func() { s.accept(ctx) })
	return s, nil
}

// Endpoint is where clients connect.
func (s *Server) Endpoint() string { return s.endpoint }

// Close ends the contexts of all handlers, closes all connections and waits for the handlers to
// return. It may be called again; its error is always nil.
func (s *Server) Close() error {
	s.closed.Do(func() {
		s.stop(ErrClosed)
		_ = s.listener.Close()
		if s.file != nil {
			s.file.close()
		}
	})
	s.wg.Wait()
	return nil
}

// accept takes connections until the listener is closed, and backs off while there are no file
// descriptors left.
func (s *Server) accept(ctx context.Context) {
	const shortest, longest = 5 * time.Millisecond, time.Second
	pause := time.Duration(0)
	for {
		nc, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if pause == 0 {
				s.opt.Logger.WarnContext(ctx, "connection not accepted", slog.Any("err", err))
			}
			pause = min(max(2*pause, shortest), longest)
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
			continue
		}
		pause = 0
		select {
		case s.conns <- struct{}{}:
			s.wg.Go(func() {
				defer func() { <-s.conns }()
				s.serve(ctx, nc)
			})
		default:
			s.opt.Logger.WarnContext(ctx, "connection refused: too many")
			_ = nc.Close()
		}
	}
}

// run finds an unanswered run.
func (s *Server) run(id string) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id]
}
