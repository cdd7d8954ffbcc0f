package config

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

func (b *binder) checkServer(s *Server, r *Run) {
	key := func(k string) toml.Key { return toml.Key{"server", k} }
	if b.given("server", "command") && b.given("server", "address") {
		b.report(key("address"), "keep command for a server that wevalr starts, address for one that somebody else runs", "command and address exclude each other")
	}
	if command, ok := lookup(b.tree, key("command")).([]any); ok {
		switch {
		case len(command) == 0 || len(s.Command) > 0 && s.Command[0] == "":
			b.report(key("command"), `for example command = ["python", "serve.py", "--address", "{address}"]`, "empty")
		case len(s.Command) == len(command) && !strings.Contains(strings.Join(s.Command, "\x00"), "{address}"):
			b.report(key("command"), `add "{address}" where the server takes the endpoint that it is to listen on`, "{address} is missing")
		}
	}
	if b.given("server", "cwd") {
		b.checkDir(key("cwd"), s.Cwd)
	}
	if b.given("server", "address") {
		b.checkAddress(s)
		if len(s.Env) > 0 {
			b.report(key("env"), "leave it out, or use command", "there is no process of ours to pass variables to")
		}
		if s.Instances > 1 {
			b.report(key("instances"), "write instances = 1, or use command", "an address is one server, got %d", s.Instances)
		}
		if s.OnExit == "restart" {
			b.report(key("on_exit"), `write on_exit = "fail", or use command`, "a server that somebody else runs cannot be restarted")
		}
	}
	if r.ReplyBudgetMiB > 0 && s.ReplyMaxMiB > r.ReplyBudgetMiB {
		where := toml.Key{"server", "reply_max_mib"}
		if !b.given(where...) {
			where = toml.Key{"run", "reply_budget_mib"}
		}
		b.report(where, "lower server.reply_max_mib or raise run.reply_budget_mib", "one reply (%d MiB) may be larger than the budget for all (%d MiB)", s.ReplyMaxMiB, r.ReplyBudgetMiB)
	}
}

func (b *binder) checkAddress(s *Server) {
	key := toml.Key{"server", "address"}
	const hint = `for example address = "tcp://127.0.0.1:5555" or "ipc:///run/env.sock"`
	if path, ok := strings.CutPrefix(s.Address, "ipc://"); ok && path != "" {
		if !filepath.IsAbs(path) {
			s.Address = "ipc://" + b.abs(path)
		}
		return
	}
	if hostport, ok := strings.CutPrefix(s.Address, "tcp://"); ok {
		host, port, err := net.SplitHostPort(hostport)
		if n, perr := strconv.ParseUint(port, 10, 16); err == nil && perr == nil && n > 0 && host != "" {
			return
		}
	}
	if _, isString := lookup(b.tree, key).(string); isString {
		b.report(key, hint, "malformed address %s", quote(clip(s.Address)))
	}
}
