package hostile

import (
	"fmt"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
)

// answers come, and are wrong.
func answers() []Module {
	at := func(ptr, n uint32) *guest { return &guest{Body: i64c(int64(uint64(ptr)<<32 | uint64(n)))} }
	bad := func(name, says string, g *guest) Module { return fails(name, "response", says, g) }
	packed := func(s string) *guest {
		g := &guest{Encoding: abi.EncodingMsgpack}
		g.Body = g.Answer(s)
		return g
	}
	value := func(b string) *guest { return packed("\x81\xa2ok\x81\xa6scores\x91\x82\xa4name\xa3any\xa5value" + b) }
	// The answer stands in the request's own buffer.
	overlap := answering("")
	text := score("1")
	for i := range len(text) {
		overlap.Body = cat(i32c(int32(bufAt+i)), i32c(int32(text[i])), op(0x3a, 0, 0), overlap.Body)
	}
	overlap.Body = cat(overlap.Body, drop(), i64c(bufAt<<32|int64(len(text))))

	// Each name would be a column of the summary, with a place for every task.
	var names []string
	for i := range abi.MaxScores + 1 {
		names = append(names, fmt.Sprintf(`{"name":"n%d","value":1}`, i))
	}
	many := answering(`{"ok":{"scores":[` + strings.Join(names, ",") + `]}}`)

	ranged := answering(score("1.5"))
	ranged.Manifest = scorerManifest + "range = [0, 1]\n"

	return []Module{
		bad("response outside of the memory", "outside", at(0x7fffffff, 10)),
		bad("response past the end", "outside", at(4*65536-1, 2)),
		bad("response that wraps around", "outside", at(0xffffffff, 2)),
		bad("response over the limit", "over the limit of 8 MiB", at(0, abi.MaxResponse+1)),
		bad("response of 4 GiB", "over the limit", at(0, 0xffffffff)),
		bad("empty response", "empty", at(1024, 0)),
		harmless("response on the request", "", overlap),
		stillborn("no buffer", "response", "no room", &guest{Buf: i32c(0)}),
		stillborn("a buffer outside of the memory", "response", "outside", &guest{Buf: i32c(-1)}),
		stillborn("a buffer whose end is outside", "response", "outside", &guest{Buf: i32c(4*65536 - 1)}),
		bad("no JSON", "cannot be decoded", answering("{")),
		bad("JSON without end", "cannot be decoded", answering(strings.Repeat("[", 100_000))),
		bad("invalid UTF-8", "UTF-8", answering("{\"ok\":{\"scores\":[{\"value\":1,\"label\":\"\xff\"}]}}")),
		bad("ok and err", "exactly one", answering(`{"ok":{},"err":{}}`)),
		bad("neither ok nor err", "exactly one", answering(`{}`)),
		bad("a score of another type", "cannot be decoded", answering(score(`"0.5"`))),
		bad("a score that is no number", "cannot be decoded", answering(score("NaN"))),
		bad("a score over any number", "cannot be decoded", answering(score("1e999"))),
		bad("a score outside of its range", "outside of its range", ranged),
		bad("257 scores", "want 256 at most", many),
		bad("no score", "gave no score", answering(`{"ok":{"scores":[]}}`)),
		bad("no scores", "gave no score", answering(`{"ok":{}}`)),
		bad("the same score twice", "given twice", answering(`{"ok":{"scores":[{"name":"any","value":1},{"name":"any","value":1}]}}`)),
		bad("a score's name with an escape sequence", "bad score name", answering(`{"ok":{"scores":[{"name":"a\u001b[2J","value":1}]}}`)),
		bad("msgpack NaN", "is NaN", value("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00")),
		bad("msgpack Inf", "is +Inf", value("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00")),
		bad("msgpack array of 4 billion", "cannot be decoded", packed("\x81\xa2ok\xdd\xff\xff\xff\xff")),
		bad("msgpack map of 4 billion", "cannot be decoded", packed("\x81\xa2ok\xdf\xff\xff\xff\xff")),
		bad("msgpack text of 4 GiB", "cannot be decoded", packed("\x81\xa2ok\xdb\xff\xff\xff\xff")),
		bad("msgpack without end", "cannot be decoded", packed("\x81\xa2ok"+strings.Repeat("\x91", 100_000))),
		bad("msgpack maps without end", "cannot be decoded", packed("\x81\xa2ok"+strings.Repeat("\x81\x01", 100_000))),
		bad("msgpack with a rest", "cannot be decoded", packed("\x81\xa2ok\x80\x80")),
		bad("msgpack key twice", "", packed("\x82\xa2ok\x80\xa2ok\x80")),
	}
}

// escapes write what a terminal would obey.
func escapes() []Module {
	const esc = `\u001b[31m\u009b2J\u202e\u0007`
	text := answering(`{"ok":{"scores":[{"name":"any","value":1,"label":"` + esc + `","explanation":"` + esc + `","answer":"` + esc + `"}]}}`)
	own := answering(`{"err":{"code":"a` + esc + `","message":"` + esc + `","data":{"k":"v"}}}`)
	out := &guest{Imports: []imported{wasi("fd_write", "iiii")}}
	ptr, n := out.Put("\x1b]0;title\x07\xff\xfe \x1b[2J")
	out.Body = cat(store(bufAt, ptr), store(bufAt+4, n), call(0, 2, bufAt, 1, roomAt), expect(0), unreachable())
	return []Module{
		harmless("escape sequences in a score", "\ufffd[31m\ufffd2J\ufffd\ufffd", text),
		fails("escape sequences in an error", "a\ufffd[31m\ufffd2J\ufffd\ufffd", "\ufffd[31m\ufffd2J\ufffd\ufffd", own),
		fails("escape sequences on standard error", "trap", "\ufffd]0;title\ufffd", out),
	}
}
