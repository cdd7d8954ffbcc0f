package meter

import (
	"fmt"
	"strings"
)

// Info is what a module says without being run.
type Info struct {
	Imports   []Import
	Exports   []Export
	Functions int    // its own
	MemoryMin uint32 // pages of 64 KiB
	MemoryMax uint32 // pages; 65,536 when the module gives none
	Segments  int    // of data
	Globals   []Global
	Seen      Seen
	Largest   Largest
	// Cost is the estimated time to compile the module with one worker, in nanoseconds. It errs on
	// the high side where a module is made to be slow.
	Cost uint64
}

// Global is a mutable global of the module's own, and the name under which
// [Options].ExportGlobals exports it.
type Global struct {
	Name string
	Type ValType
}

// Largest holds the maxima over the functions, for comparison with [Caps].
type Largest struct {
	Locals, Depth, BrTable, Blocks, Body int
	// Cost is estimated as Info.Cost.
	Cost uint64
}

// Seen says which state a module can change besides memory and numeric globals: state that putting
// back an image does not put back.
type Seen struct { //nolint:recvcheck // a value to all but the check that fills it
	Tables   bool // table.set, grow, fill, copy, init
	Segments bool // elem.drop, data.drop, memory.init
	Globals  bool // mutable globals that are vectors or references
}

// Resettable says whether memory and globals are all that a call can leave behind.
func (s Seen) Resettable() bool { return s == Seen{} }

func (s *Seen) add(op int) {
	switch op {
	case opTableSet, opTableGrow, opTableFill, opTableCopy, opTableInit:
		s.Tables = true
	case opElemDrop, opDataDrop, opMemoryInit:
		s.Segments = true
	}
}

// Check reads a whole module and refuses it when it is malformed where an engine's compiler could
// trip over it, when it brings or imports state that a sandbox cannot bound (a start function,
// another memory, an imported table), or when it is over the caps. It does not type-check code: a
// module that passes can still be invalid. Which functions may be imported is the caller's to say.
//
// # Errors
//
// *[Refusal].
func Check(b []byte, caps Caps) (*Info, error) {
	c := caps.filled()
	if len(b) > c.Bytes {
		return nil, &Refusal{
			Section: "module", Rule: "size", Saw: fmt.Sprint(len(b)),
			Limit: fmt.Sprint(c.Bytes), Remedy: remedySmaller,
		}
	}
	m, refusal := parse(b, c)
	if refusal == nil {
		refusal = m.policy(c)
	}
	if refusal != nil {
		return nil, refusal
	}
	info := &Info{
		Imports: m.imports, Exports: m.exports, Functions: len(m.bodies), Segments: len(m.data),
		MemoryMin: m.mems[0].min, MemoryMax: m.mems[0].max, Globals: m.mutable(),
	}
	for _, g := range info.Globals {
		info.Seen.Globals = info.Seen.Globals || g.Type < F64 // vectors and references
	}
	if refusal := m.checkCode(c, info); refusal != nil {
		return nil, refusal
	}
	return info, nil
}

// mutable lists the mutable globals of the module's own.
func (m *module) mutable() []Global {
	var gs []Global
	for i, g := range m.globals[m.nImpGlobals:] {
		if g.mutable {
			gs = append(gs, Global{fmt.Sprintf("%s%d", globalExport, i), g.typ})
		}
	}
	return gs
}

// policy refuses what a guest may not have or bring.
func (m *module) policy(c *Caps) *Refusal {
	refuse := func(id byte, rule, saw, limit, remedy string) *Refusal {
		return &Refusal{sectionName(id), m.secs[id].pos, rule, saw, limit, remedy}
	}
	for _, im := range m.imports {
		if im.Kind != KindFunc {
			what := [...]string{KindTable: "table", KindMemory: "memory", KindGlobal: "global"}[im.Kind]
			return refuse(secImport, what+" import", im.Module+"."+im.Name, "", "import functions only")
		}
	}
	if refusal := m.reservedExport(); refusal != nil {
		return refusal
	}
	if m.hasStart {
		return refuse(secStart, "start function", "given", "", "export _initialize instead (a reactor, not a command)")
	}
	if len(m.mems) != 1 {
		return refuse(secMemory, "memory count", fmt.Sprint(len(m.mems)), "1", "define one memory")
	}
	mem := &m.mems[0]
	const pages = 65_536
	if !mem.hasMax {
		mem.max = pages
	}
	if mem.min > mem.max || mem.max > pages {
		return refuse(secMemory, "memory size", fmt.Sprintf("%d to %d pages", mem.min, mem.max), fmt.Sprint(pages), "")
	}
	for _, t := range m.tables {
		if int64(t.min) > int64(c.Entries) {
			return refuse(secTable, "table size", fmt.Sprint(t.min), fmt.Sprint(c.Entries), "use a smaller table")
		}
		if t.hasMax && t.max < t.min {
			return refuse(secTable, "table size", fmt.Sprintf("%d to %d", t.min, t.max), "", "")
		}
	}
	return nil
}

func (m *module) reservedExport() *Refusal {
	for _, e := range m.exports {
		if strings.HasPrefix(e.Name, Prefix) {
			return &Refusal{
				Section: "export", Offset: m.secs[secExport].pos, Rule: "export name",
				Saw: e.Name, Remedy: "the prefix " + Prefix + " is the host's: rename the export",
			}
		}
	}
	return nil
}

// checkCode walks every body.
func (m *module) checkCode(c *Caps, info *Info) *Refusal {
	var w body
	mutable := len(info.Globals)
	for i := range m.bodies {
		f := shape{size: m.bodies[i].end - m.bodies[i].pos, mutable: mutable}
		at := m.bodies[i].pos
		w.open(m, i)
		r := &w.r
		r.cap(at, "function size", f.size, c.Body, "split the function")
		r.cap(at, "locals", int(w.locals), c.Locals, "split the function")
		f.locals = int(w.locals)
		for r.err == nil && w.next() {
			in := &w.instr
			w.follow()
			blocks := 0 // that the engine makes of it
			switch in.op {
			case opLoop, opBlock, opIf:
				if blocks = 4; in.op == opLoop {
					f.loops++
					blocks = loopBlocks
				}
				f.blocks++
				f.depth = max(f.depth, len(w.frames))
				r.cap(in.at, "blocks", f.blocks, c.Blocks, "split the function")
				r.cap(in.at, "nesting", len(w.frames), c.Depth, "nest less")
			case opEnd:
				w.pop()
			case opBrIf:
				f.branches++
				blocks = 2
			case opBrTable:
				blocks = int(in.index) + 1
				f.brTable = max(f.brTable, int(in.index))
				f.labels += int(in.index)
				f.brTables += uint64(in.index) * uint64(in.index)
				r.cap(in.at, "br_table", int(in.index), c.BrTable, "split the switch")
			case opCall:
				f.calls++
				f.pass(&m.types[m.funcs[in.index]])
			case opCallIndirect:
				f.calls++
				f.pass(in.typ)
				blocks, f.inner = 1, f.inner+1
			case opTableGet, opTableSet:
				f.inner++
			case opTableFill:
				blocks, f.inner = fillLoops*loopBlocks, f.inner+5
				f.fills++
			case opTableCopy, opTableInit, opMemoryInit:
				blocks, f.inner = 3, f.inner+3
			}
			if truncates(in.op) {
				blocks, f.inner = 2, f.inner+2
			}
			f.live += uint64(blocks) * uint64(max(w.height-fewLive, 0))
			info.Seen.add(in.op)
		}
		if r.err != nil {
			return r.err
		}
		f.arity = w.arity
		cost := f.cost()
		l := &info.Largest
		*l = Largest{
			max(l.Locals, f.locals), max(l.Depth, f.depth), max(l.BrTable, f.brTable),
			max(l.Blocks, f.blocks), max(l.Body, f.size), max(l.Cost, cost),
		}
		info.Cost += cost
		switch {
		case cost > c.FuncCost:
			return r.tooDear(at, c.FuncCost, fmt.Sprintf("a part of function %d", i))
		case info.Cost > c.Cost:
			return r.tooDear(at, c.Cost, fmt.Sprintf("%d of %d functions", i+1, len(m.bodies)))
		}
	}
	return nil
}

// tooDear refuses what costs more than limit to compile, in nanoseconds.
func (r *reader) tooDear(at int, limit uint64, after string) *Refusal {
	r.fail(at, "compile cost", fmt.Sprintf("over %d ms after %s", limit/1e6, after))
	r.err.Limit = fmt.Sprintf("%d ms", limit/1e6)
	r.err.Remedy = "fewer blocks, loops and locals in one function"
	return r.err
}

// shape is what the time to compile a function depends on.
type shape struct {
	size, locals, loops, blocks, depth, branches, calls, mutable, arity int

	fills           int    // table.fill, which the engine makes loops of
	inner           int    // blocks that the engine makes of single instructions
	passed          int    // values that calls take and give, a few for each excepted
	live            uint64 // sum of the values on the stack, some excepted, at each block that is made
	brTable, labels int    // largest, and all, of the br_tables
	brTables        uint64 // sum of their squares
}

// What costs next to nothing: so many values that live through a block, or that a call takes and gives.
const (
	fewLive   = 16
	fewPassed = 8
)

// What lives through a loop costs as much as through so many blocks, the meter's own check included, and
// through a table.fill as through so many loops.
const (
	loopBlocks = 20
	fillLoops  = 4
)

func (f *shape) pass(t *FuncType) {
	f.passed += max(len(t.Params)+len(t.Results)-fewPassed, 0)
}

// truncates says that an instruction makes an integer of a float, or traps.
func truncates(op int) bool {
	return op >= 0xa8 && op <= 0xab || op >= 0xae && op <= 0xb1
}

// cost estimates the nanoseconds that the engine's compiler takes. The factors are measured on
// modules that have much of one thing (BenchmarkCompile) and rounded up.
func (f *shape) cost() uint64 {
	u := func(n int) uint64 { return uint64(n) }
	// Twice the basic blocks, those of the meter's own checks included.
	blocks := 2 + 2*u(f.blocks) + 3*u(f.branches) + 4*u(f.loops) + u(f.inner)
	// Every way into a join carries the locals that differ; a few cost next to nothing.
	joins := u(f.branches) + u(f.labels)/4 + u(f.blocks)/2 + u(f.inner)/8
	return 8_000 +
		300*u(f.size) + u(f.size)*u(f.size)/300 +
		3*blocks*blocks +
		f.brTables +
		2_000*u(f.loops+fillLoops*f.fills)*u(f.locals+2) +
		2_000*joins*u(max(f.locals-fewLive, 0)+f.arity) +
		250*f.live + 2_000*u(f.passed) +
		400*u(f.calls)*u(f.mutable+2)
}
