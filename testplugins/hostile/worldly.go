package hostile

import "slices"

// worldly modules try to touch the machine through WASI, and find the errno that docs/security.md names.
func worldly() []Module {
	w := wasi
	const badf, inval, mfile, nametoolong, notdir, notsock, perm, rofs, notcapable = 8, 28, 33, 37, 54, 57, 63, 69, 76
	noFolder := cat(call(0, 3, 1, dataAt, 2, 0, int64(2), int64(0), 0, roomAt), expect(badf))

	files := &guest{Imports: []imported{
		pathOpen(), w("fd_prestat_get", "ii"), w("fd_read", "iiii"), w("fd_readdir", "iiiIi"), w("path_create_directory", "iii"),
		w("fd_pwrite", "iiiIi"), w("path_symlink", "iiiii"), w("path_filestat_get", "iiiii"),
	}}
	files.Body = cat(noFolder,
		call(0, 0, 1, dataAt, 2, 0, int64(2), int64(0), 0, roomAt), expect(notdir),
		call(0, -1, 1, dataAt, 2, 0, int64(2), int64(0), 0, roomAt), expect(badf),
		call(1, 3, roomAt), expect(badf), call(2, 3, bufAt, 1, roomAt), expect(badf), call(3, 3, roomAt, 100, int64(0), roomAt+200), expect(badf),
		call(4, 3, dataAt, 2), expect(badf), call(5, 1, bufAt, 1, int64(0), roomAt), expect(rofs), call(6, dataAt, 2, 3, dataAt, 2), expect(badf),
		call(7, 3, 0, dataAt, 2, roomAt), expect(badf), good(files))

	env := &guest{Imports: []imported{w("environ_sizes_get", "ii"), w("args_sizes_get", "ii"), w("environ_get", "ii"), w("args_get", "ii")}}
	count := func(i byte) []byte {
		return cat(store(roomAt, 7), call(i, roomAt, roomAt+4), expect(0), load(roomAt), expect(0), load(roomAt+4), expect(0))
	}
	env.Body = cat(count(0), count(1), call(2, roomAt, roomAt), expect(0), call(3, roomAt, roomAt), expect(0), good(env))

	sockets := &guest{Imports: []imported{w("sock_accept", "iii"), w("sock_recv", "iiiiii"), w("sock_send", "iiiii"), w("sock_shutdown", "ii")}}
	sockets.Body = cat(call(0, 3, 0, roomAt), expect(badf), call(0, 1, 0, roomAt), expect(notsock), call(1, 0, bufAt, 1, 0, roomAt, roomAt), expect(notsock),
		call(2, 4, bufAt, 1, 0, roomAt), expect(badf), call(3, 1, 2), expect(notsock), good(sockets))

	// The clock stands at 2022-01-01T01:00:00Z and a microsecond; a sleep of 100 years takes no time.
	clock := &guest{Imports: []imported{w("clock_time_get", "iIi"), w("poll_oneoff", "iiii")}}
	time := cat(call(0, 0, int64(1), roomAt), expect(0), i32c(roomAt), op(0x29, 3, 0))
	isTime := func(v int64) []byte { return cat(i64c(v), op(0x52, 0x04, 0x40, 0x00, 0x0b)) }
	const begin, century = (1640995200 + 3600) * 1_000_000_000, 100 * 365 * 24 * 3600 * 1_000_000_000
	// 48 bytes of a subscription to a clock: userdata, tag 0, clock 1, timeout, precision, flags 0.
	wait := cat(i32c(bufAt), i32c(0), i32c(48), op(0xfc, 0x0b, 0), store(bufAt+16, 1), i32c(bufAt+24), i64c(century), op(0x37, 3, 0),
		call(1, bufAt, roomAt, 1, roomAt+64), expect(0), load(roomAt+64), expect(1))
	clock.Body = cat(time, isTime(begin+1000), call(0, 2, int64(1), roomAt), expect(inval), call(0, 9, int64(1), roomAt), expect(inval),
		wait, time, isTime(begin+century+2000), call(1, bufAt, roomAt, -1, roomAt+64), expect(inval), good(clock))

	entropy := &guest{Imports: []imported{w("random_get", "ii")}}
	random := cat(call(0, roomAt, 8), expect(0), load(roomAt))
	text := score("0")
	ptr, n := entropy.Put(text)
	entropy.Body = cat(i32c(ptr+n-int32(len("0}]}}"))), random, i32c(7), op(0x71), i32c('0'), op(0x6a, 0x3a, 0, 0), i64c(int64(ptr)<<32|int64(n)))

	pointers := &guest{Imports: []imported{w("random_get", "ii"), w("fd_write", "iiii"), w("environ_sizes_get", "ii"), w("poll_oneoff", "iiii")}}
	const fault = 21
	pointers.Body = cat(call(0, -8, 100), expect(fault), call(1, 2, -8, 1, roomAt), expect(fault), call(1, 2, bufAt, -1, roomAt), expect(inval),
		store(bufAt, -4), store(bufAt+4, 100), call(1, 2, bufAt, 1, roomAt), expect(fault), call(2, -2, roomAt), expect(fault),
		call(3, -8, roomAt, 1, roomAt), expect(fault), good(pointers))

	// With a folder: it can be read, and nothing else.
	read := &guest{Manifest: scorerManifest + folderManifest, Imports: []imported{
		pathOpen(), w("path_unlink_file", "iii"), w("path_readlink", "iiiiii"), w("path_filestat_get", "iiiii"), w("path_rename", "iiiiii"), w("fd_close", "i"),
	}}
	tries := func(path string, want int32) []byte {
		ptr, n := read.Put(path)
		return cat(open(ptr, n), expect(want))
	}
	in, inLen := read.Put("in")
	read.Body = cat(
		tries("../outside", notcapable), tries("x/../../outside", notcapable), tries("/etc/passwd", perm), tries("/data/dataset/in", perm),
		tries("absolute", notcapable), tries("relative", notcapable), tries("folder/secret", notcapable), tries("none", 44),
		tries(string(repeat(5000, []byte("x"))), nametoolong), tries("in\x00", notcapable), tries("\xff", inval), tries("", 44),
		call(0, 3, 1, in, inLen, 1, int64(2), int64(0), 0, roomAt), expect(rofs), // create
		call(0, 3, 1, in, inLen, 8, int64(2), int64(0), 0, roomAt), expect(rofs), // truncate
		call(0, 3, 1, in, inLen, 0, int64(1<<6), int64(0), 0, roomAt), expect(rofs), // write
		call(1, 3, in, inLen), expect(rofs), call(2, 3, in, inLen, roomAt, 100, roomAt), expect(notcapable),
		call(3, 3, 1, in, inLen, roomAt), expect(0), call(4, 3, in, inLen, 3, in, inLen), expect(rofs),
		tries("in", 0), call(5, 4), expect(0), good(read))

	descriptors := &guest{Manifest: scorerManifest + folderManifest, Imports: []imported{pathOpen()}}
	name, nameLen := descriptors.Put("in")
	descriptors.Body = cat(
		op(0x03, 0x40), open(name, nameLen), op(0x45, 0x0d, 0, 0x0b), // until it fails
		open(name, nameLen), expect(mfile), load(roomAt), expect(63), good(descriptors))

	// Everything that takes a descriptor, on one that is not open; and what changes things, on the folder and on
	// a file in it.
	byFD := &guest{}
	fileFunctions := []imported{
		w("fd_advise", "iIIi"), w("fd_allocate", "iII"), w("fd_close", "i"), w("fd_datasync", "i"), w("fd_fdstat_get", "ii"),
		w("fd_fdstat_set_flags", "ii"), w("fd_fdstat_set_rights", "iII"), w("fd_filestat_get", "ii"), w("fd_filestat_set_size", "iI"),
		w("fd_filestat_set_times", "iIIi"), w("fd_pread", "iiiIi"), w("fd_prestat_get", "ii"), w("fd_prestat_dir_name", "iii"),
		w("fd_pwrite", "iiiIi"), w("fd_read", "iiii"), w("fd_readdir", "iiiIi"), w("fd_renumber", "ii"), w("fd_seek", "iIii"), w("fd_sync", "i"),
		w("fd_tell", "ii"), w("fd_write", "iiii"), w("path_create_directory", "iii"), w("path_filestat_get", "iiiii"),
		w("path_filestat_set_times", "iiiiIIi"), w("path_link", "iiiiiii"), pathOpen(), w("path_readlink", "iiiiii"),
		w("path_remove_directory", "iii"), w("path_rename", "iiiiii"), w("path_unlink_file", "iii"),
		w("sock_accept", "iii"), w("sock_recv", "iiiiii"), w("sock_send", "iiiii"), w("sock_shutdown", "ii"),
	}
	for _, f := range fileFunctions {
		attempt(byFD, f, 3, badf)
	}
	byFD.Body = cat(byFD.Body, good(byFD))
	changes := &guest{Manifest: scorerManifest + folderManifest, Imports: []imported{pathOpen()}}
	file, fileLen := changes.Put("in")
	changes.Body = cat(open(file, fileLen), expect(0))
	for _, f := range []imported{
		w("fd_allocate", "iII"), w("fd_filestat_set_size", "iI"), w("fd_filestat_set_times", "iIIi"), w("fd_pwrite", "iiiIi"), w("fd_write", "iiii"),
		w("path_create_directory", "iii"), w("path_filestat_set_times", "iiiiIIi"), w("path_link", "iiiiiii"), w("path_remove_directory", "iii"),
		w("path_rename", "iiiiii"), w("path_unlink_file", "iii"),
	} {
		attempt(changes, f, 3, rofs)
		attempt(changes, f, 4, rofs)
	}
	changes.Body = cat(changes.Body, good(changes))

	return []Module{
		harmless("files", "", files),
		harmless("every function on no descriptor", "", byFD),
		folder(harmless("changes in the folder", "", changes)),
		harmless("environment and arguments", "", env),
		harmless("sockets", "", sockets),
		harmless("the clock", "", clock),
		harmless("entropy", "", entropy),
		harmless("pointers to nowhere", "", pointers),
		folder(harmless("files outside of the folder", "", read)),
		folder(harmless("all the descriptors there are", "", descriptors)),
	}
}

// attempt calls f on a descriptor, with nothing else in its arguments, and traps unless it gives want.
func attempt(g *guest, f imported, fd int, want int32) {
	i := slices.Index(g.Imports, f)
	if i < 0 {
		i = len(g.Imports)
		g.Imports = append(g.Imports, f)
	}
	args := []any{fd}
	for _, t := range f.Params[1:] {
		if t == 'I' {
			args = append(args, int64(0))
		} else {
			args = append(args, 0)
		}
	}
	g.Body = cat(g.Body, call(byte(i), args...), expect(want))
}
