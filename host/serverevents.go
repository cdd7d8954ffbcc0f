package host

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/server"
)

// serverEvent writes a point in an env-server's life into the journal, and tells the operator of those
// that nobody asked for. It is called from the servers' own goroutines.
func (a *attempt) serverEvent(ev server.Event) {
	rec := journal.ServerEvent{
		At: ev.At, Event: ev.Kind, Instance: ev.Instance, Generation: ev.Generation, PID: ev.PID, Log: ev.Log,
	}
	if ev.Err != nil {
		rec.Reason = firstLine(ev.Err.Error())
	}
	requested := false
	switch ev.Kind {
	case server.EventExited:
		requested = ended(&rec, ev.Err)
	case server.EventNotReady:
		if nr, ok := errors.AsType[*server.NotReadyError](ev.Err); ok && nr.Exited != nil {
			rec.Event = journal.ServerExited
			ended(&rec, nr.Exited)
		}
	case server.EventBackingOff:
		a.progress.Notice(fmt.Sprintf("env-server %d: generation %d starts in %.1f s", ev.Instance, ev.Generation, ev.Delay.Seconds()))
	}
	if ev.Err != nil && !requested && ev.Kind != server.EventBackingOff {
		a.progress.Notice("env-server " + strconv.Itoa(ev.Instance) + ": " + ev.Kind + ": " + rec.Reason)
	}
	if err := a.run.Server(rec); err != nil {
		a.log.Warn("server event not recorded", slog.Any("err", err))
	}
}

// ended fills in how a process ended, and tells whether wevalr wanted it.
func ended(rec *journal.ServerEvent, err error) (requested bool) {
	if lost, ok := errors.AsType[*server.ConnLostError](err); ok {
		rec.PID, rec.UptimeS = lost.PID, lost.Uptime.Seconds()
		return false
	}
	exited, ok := errors.AsType[*server.ExitedError](err)
	if !ok {
		return false
	}
	rec.PID, rec.UptimeS = exited.PID, exited.Uptime.Seconds()
	if exited.Signal != 0 {
		rec.Signal = new(int(exited.Signal))
	} else {
		rec.Code = new(exited.Code)
	}
	if exited.Requested {
		rec.Reason = "stopped by wevalr"
	}
	return exited.Requested
}
