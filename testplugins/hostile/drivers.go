package hostile

import "github.com/wevalr/wevalr/plugins/abi"

// drivers misuse an env-server that answers every run at once.
func drivers() []Module {
	const start, await, poll, cancel, take, end = 0, 1, 2, 3, 4, 5
	driver := func() *guest {
		return &guest{Manifest: driverManifest, Imports: []imported{
			env("env_start", "ii"), env("env_await", "i"), env("env_poll", "i"), env("env_cancel", "i"), env("env_take", "iii"), env("env_close", "i"),
		}}
	}
	run := func(g *guest, req string) []byte {
		ptr, n := g.Put(req)
		return call(start, ptr, n)
	}
	const plain, first = `{"task_data":{"q":1}}`, `{"ok":{"episodes":[1],"selected":0}}`
	one := func(g *guest) []byte { return cat(run(g, plain), expect(1), call(await, -1), expect(1)) }
	invalid, denied := expect(int32(abi.Invalid)), expect(int32(abi.Denied))

	make1 := func(f func(g *guest) []byte) *guest {
		g := driver()
		g.Body = f(g)
		return g
	}
	foreign := make1(func(g *guest) []byte {
		return cat(call(poll, 7), invalid, call(cancel, 7), invalid, call(take, 7, roomAt, 10), invalid, call(end, 7), invalid,
			call(take, -1, roomAt, 10), invalid, call(await, -1), expect(int32(abi.NotFound)), one(g), g.Answer(first))
	})
	closed := make1(func(g *guest) []byte {
		return cat(one(g), call(end, 1), expect(0), call(take, 1, roomAt, 100), invalid, call(end, 1), invalid, g.Answer(first))
	})
	double := make1(func(g *guest) []byte {
		taken := cat(call(take, 1, roomAt, 1000), i32c(0), op(0x4a), expect(1)) // more than 0
		return cat(one(g), taken, taken, call(end, 1), expect(0), call(take, 1, roomAt, 1000), invalid,
			run(g, plain), expect(2), call(await, -1), expect(2), g.Answer(`{"ok":{"episodes":[2],"selected":0}}`))
	})
	after := make1(func(g *guest) []byte {
		return cat(one(g), call(cancel, 1), expect(0), call(cancel, 1), expect(0), call(poll, 1), expect(1), g.Answer(first))
	})
	many := make1(func(g *guest) []byte {
		return cat(forever(cat(run(g, plain), i32c(int32(abi.LimitReached)), op(0x46, 0x04, 0x40), g.Answer(`{"err":{"code":"full","message":""}}`), op(0x0f, 0x0b))))
	})
	again := make1(func(g *guest) []byte {
		starts := cat(run(g, plain), op(0x22, 2), i32c(int32(abi.LimitReached)), op(0x46, 0x04, 0x40), g.Answer(`{"err":{"code":"enough","message":""}}`), op(0x0f, 0x0b))
		closes := cat(op(0x20, 2, 0x10, end), expect(0))
		return forever(cat(starts, call(await, -1), drop(), closes))
	})
	again.Locals = []byte{i32}
	spin := make1(func(g *guest) []byte { return cat(one(g), forever(cat(call(poll, 1), drop()))) })
	requests := make1(func(g *guest) []byte {
		return cat(
			run(g, `{"task_data":{},"client":{"base_url":"http://evil"}}`), invalid, run(g, `{"task_data":{},"model":"other"}`), invalid,
			run(g, `{"sampling":{}}`), invalid, run(g, "[["), invalid, run(g, ""), invalid, run(g, "{\"task_data\":{\"a\":\"\xff\"}}"), invalid,
			run(g, `{"task_data":{},"sampling":{"top_p":1}}`), denied, run(g, `{"task_data":{"image":"evil"}}`), denied,
			run(g, `{"task_data":{"network_allow":["*"]}}`), denied, one(g), g.Answer(first))
	})
	nested := make1(func(g *guest) []byte {
		const deep = 4 << 20
		g.Pages = [2]int{160, 160}
		end := g.Answer(`{"err":{"code":"deep","message":""}}`)
		ptr, n := g.Put(`{"task_data":{"a":`)
		return cat(i32c(ptr+n), i32c('['), i32c(deep), op(0xfc, 0x0b, 0), call(start, ptr, n+deep), invalid, end)
	})
	outside := make1(func(*guest) []byte { return cat(call(start, -1, 100), drop(), unreachable()) })
	reply := make1(func(g *guest) []byte { return cat(one(g), call(take, 1, -8, 1000), drop(), unreachable()) })

	modules := []Module{
		harmless("a handle of somebody else's", "", foreign),
		fails("a closed handle in the answer", "response", "not an open handle", closed),
		harmless("a handle taken twice", "", double),
		harmless("a call after its cancel", "", after),
		fails("2,000 handles", "full", "", many),
		fails("runs without end, one at a time", "enough", "", again),
		fails("polling for ever", "fuel", "", spin),
		harmless("requests for more than is granted", "", requests),
		fails("a request of 4 million brackets", "deep", "", nested),
		fails("a request outside of the memory", "trap", "outside of the memory", outside),
		fails("a reply to outside of the memory", "trap", "outside of the memory", reply),
		fails("the same handle twice", "response", "named twice", make1(func(g *guest) []byte {
			return cat(one(g), g.Answer(`{"ok":{"episodes":[1,1],"selected":0}}`))
		})),
		fails("a selection that is not there", "response", "selected = 5", make1(func(g *guest) []byte {
			return cat(one(g), g.Answer(`{"ok":{"episodes":[1],"selected":5}}`))
		})),
		fails("a handle of 2^62", "response", "not an open handle", make1(func(g *guest) []byte {
			return cat(one(g), g.Answer(`{"ok":{"episodes":[4611686018427387905],"selected":0}}`))
		})),
	}
	for i := range modules {
		modules[i].Op = abi.OpRollout
	}
	return modules
}
