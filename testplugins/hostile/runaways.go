package hostile

// runaways do not come to an end.
func runaways() []Module {
	spin := forever(nil)
	fill := cat(i32c(0), i32c(7), i32c(4*65536), op(0xfc, 0x0b, 0))
	move := cat(i32c(0), i32c(8), i32c(4*65536-8), op(0xfc, 0x0a, 0, 0))

	// All of 64 MiB at once: no instruction of a guest takes longer.
	whole := func(bulk []byte) *guest { return &guest{Pages: [2]int{1024, 1024}, Body: forever(bulk)} }
	fillAll := cat(i32c(roomAt), i32c(7), i32c(1<<26-roomAt), op(0xfc, 0x0b, 0))
	moveAll := cat(i32c(roomAt), i32c(roomAt+8), i32c(1<<26-roomAt-8), op(0xfc, 0x0a, 0, 0))

	logs := &guest{Imports: []imported{env("log", "iii")}}
	ptr, n := logs.Put("flood \x1b[2J")
	logs.Body = forever(cat(call(0, 3, ptr, n), drop()))

	silent := &guest{Imports: []imported{env("log", "iii")}}
	silent.Body = forever(cat(call(0, 3, ptr, 0), drop()))
	panics := &guest{Imports: []imported{env("fail", "ii")}}
	panics.Body = forever(cat(call(0, 0, 4*65536), drop()))

	random := &guest{Imports: []imported{wasi("random_get", "ii")}}
	random.Body = forever(cat(call(0, 0, 4*65536), expect(0)))

	// A thousand ranges of the whole memory each, again and again.
	write := &guest{Imports: []imported{wasi("fd_write", "iiii")}, Locals: []byte{i32}}
	write.Body = cat(
		op(0x03, 0x40), op(0x20, 2), i32c(bufAt), op(0x6a), i32c(0), op(0x36, 2, 0),
		op(0x20, 2), i32c(bufAt+4), op(0x6a), i32c(4*65536), op(0x36, 2, 0),
		op(0x20, 2), i32c(8), op(0x6a), op(0x22, 2), i32c(8*1024), op(0x49, 0x0d, 0, 0x0b),
		forever(cat(call(0, 2, bufAt, 1024, 0), expect(0))))

	sleep := &guest{Imports: []imported{wasi("poll_oneoff", "iiii")}}
	sleep.Body = forever(cat(call(0, 0, roomAt, 1, roomAt+64), drop()))

	grow := &guest{Pages: [2]int{1, 65536}}
	grow.Buf = i32c(32768)
	grow.Body = forever(cat(i32c(16), op(0x40, 0), drop()))

	return []Module{
		fails("spin for ever", "fuel", "20M instructions", &guest{Body: spin}),
		fails("exponential recursion without a loop", "fuel", "", &guest{
			Body: cat(i32c(60), op(0x10, 3), unreachable()), Funcs: []function{twice(3, nil)},
		}),
		fails("mutual recursion without a loop", "fuel", "", &guest{
			Body: cat(i32c(60), op(0x10, 3), unreachable()), Funcs: []function{twice(4, nil), twice(3, nil)},
		}),
		fails("deep recursion", "trap", "nest too deep", &guest{
			Body: cat(op(0x10, 3), unreachable()), Funcs: []function{{Body: op(0x10, 3)}},
		}),
		fails("deep recursion with heavy frames", "trap", "nest too deep", &guest{
			Body: cat(op(0x10, 3), unreachable()), Funcs: []function{{Locals: repeat(4000, []byte{i64}), Body: op(0x10, 3)}},
		}),
		fails("memory.fill in a row", "fuel", "", &guest{
			Body: cat(i32c(60), op(0x10, 3), unreachable()), Funcs: []function{twice(3, repeat(50, fill))},
		}),
		fails("memory.copy in a row", "fuel", "", &guest{
			Body: cat(i32c(60), op(0x10, 3), unreachable()), Funcs: []function{twice(3, repeat(50, move))},
		}),
		fails("memory.fill of 64 MiB", "fuel", "", whole(fillAll)),
		fails("memory.copy of 64 MiB", "fuel", "", whole(moveAll)),
		fails("memory.grow in a loop", "fuel", "", grow),
		fails("log flood", "fuel", "flood", logs),
		fails("a flood of empty messages", "fuel", "", silent),
		fails("a flood of last words", "fuel", "", panics),
		fails("randomness for ever", "fuel", "", random),
		fails("output of the whole memory, for ever", "fuel", "", write),
		fails("sleep for ever", "fuel", "", sleep),
		fails("wevalr_buf spins", "fuel", "", slowBuf()),
		stillborn("_initialize spins", "fuel", "", &guest{Start: op(0x03, 0x40, 0x0c, 0, 0x0b)}),
		stillborn("init spins", "fuel", "", &guest{Init: spin}),
		stillborn("_initialize recurses", "trap", "nest too deep", &guest{Start: op(0x10, 3)}),
	}
}

// twice is a function of one number n that does work, and calls function other twice with n-1, until n
// is 0.
func twice(other byte, work []byte) function {
	again := cat(op(0x20, 0), i32c(1), op(0x6b), op(0x10, other))
	return function{Params: "i", Body: cat(work, op(0x20, 0, 0x04, 0x40), again, again, op(0x0b))}
}

// slowBuf gives the buffer of init, and spins from then on.
func slowBuf() *guest {
	at := int32(roomAt)
	return &guest{Buf: cat(
		load(at), op(0x04, 0x40, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b), store(at, 1), i32c(bufAt))}
}
