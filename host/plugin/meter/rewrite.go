package meter

import (
	"fmt"
)

// Options say how a module is rewritten. The zero value works.
type Options struct {
	// ImportModule and ImportName are the refill import, func(reason i32) (fuel i64): it is called
	// when fuel is below zero, with [ReasonFuel], and what it returns is added; so the quantum is
	// what the host returns, and must be positive. With [ReasonDepth] the guest traps after it.
	// The host ends a call by a panic in it. Default "wevalr:meter" "refill".
	ImportModule, ImportName string
	// MaxDepth is how many units of depth calls may nest; 0 = 16,384.
	MaxDepth int
	// MaxTable caps every table's maximum; 0 = 65,536.
	MaxTable uint32
	// ExportGlobals exports the module's own mutable globals under the names of [Info].Globals.
	ExportGlobals bool
}

func (o Options) filled() Options {
	o.ImportModule = orElse(o.ImportModule, "wevalr:meter")
	o.ImportName = orElse(o.ImportName, "refill")
	if o.MaxDepth == 0 {
		o.MaxDepth = 16_384
	}
	if o.MaxTable == 0 {
		o.MaxTable = 65_536
	}
	return o
}

// Weights beyond one unit an instruction.
const (
	// weightHost is for ref.func, and for every operation on a range, whatever its length: some leave
	// native code.
	weightHost = 16
	// bytesShift: memory.fill, copy and init cost a unit for 8 bytes; memory.grow for 8 bytes grown.
	// table.fill, copy, init and grow cost a unit an entry.
	bytesShift = 3
	// chunk is how much of memory is filled, copied or initialised between two looks; a multiple of 8.
	chunk = 256 << 10
	// smallLeaf is how much a function that calls nothing may weigh, loops included, to go without a
	// check of its own: its caller's is near.
	smallLeaf = 32
	// longUnits is how much code without a loop runs without a check.
	longUnits = 8192
	// lateUnits is how much of what comes after a call is charged before it, and longExit how much
	// a function that calls may weigh to go without a check at its end: frames that return one after
	// the other run so much unseen, all of them together at most MaxDepth times as much.
	lateUnits = 32
	longExit  = 64
	// A frame takes a unit of depth, and one more for every so many locals and instructions: both
	// take stack.
	localsPerDepth = 16
	codePerDepth   = 1024
)

// rewriter holds the indices of what is added. The refill import comes after the imported
// functions, all else at the end, so that only the own functions' indices move, by one.
type rewriter struct {
	*module
	opt Options

	refill             uint32 // imported function
	slow, elemsFn      uint32 // own functions
	bytesFn, growFn    uint32 // only with a memory, as are these three
	fillFn, copyFn     uint32
	initFn             map[uint32]uint32 // by long passive segment
	fuel, depth        uint32            // globals
	typeRefill, typeOp uint32
	typeSlow, typeBulk uint32
	refs               []uint32          // functions that code takes the reference of
	refGlobal          map[uint32]uint32 // the global that holds it; of what may not be taken, none
	results            map[uint32]uint32 // type index → appended type () → same results
	newTypes           []FuncType
	segmentsUsed       bool // by memory.init or data.drop

	// Of the function at hand.
	body  body
	edits []edit
	back  []int
	calls int   // instructions that call
	frame int64 // units of depth that it holds
	exit  bool  // look at fuel at its end
	holds bool  // its fuel is in a local
}

// Rewrite returns the module with fuel, depth and bounded tables. The module must be valid; what
// [Check] would refuse as policy (a start function, imported memories) is metered like the rest.
// Custom sections other than function names are left out, neighbouring data segments are merged.
// It has no caps of its own: a stranger's module goes through Check first.
//
// Equal inputs give equal outputs.
//
// # Errors
//
// *[Refusal] when the module is malformed, imports anything of the refill import's module, has an
// export under [Prefix], or a table larger than MaxTable.
func Rewrite(b []byte, opt Options) ([]byte, error) {
	m, refusal := parse(b, nil)
	if refusal != nil {
		return nil, refusal
	}
	x := &rewriter{module: m, opt: opt.filled(), results: map[uint32]uint32{}}
	if refusal := x.reserved(); refusal != nil {
		return nil, refusal
	}
	x.plan()
	code, refusal := x.code()
	if refusal != nil {
		return nil, refusal
	}
	return x.assemble(code), nil
}

// reserved refuses names that are the host's, and tables that cannot be clamped.
func (x *rewriter) reserved() *Refusal {
	for _, im := range x.imports {
		if im.Module == x.opt.ImportModule {
			return &Refusal{
				Section: "import", Offset: x.secs[secImport].pos, Rule: "import name",
				Saw: im.Module + "." + im.Name, Remedy: "this import is the host's",
			}
		}
	}
	if refusal := x.reservedExport(); refusal != nil {
		return refusal
	}
	for _, t := range x.tables {
		if t.min > x.opt.MaxTable {
			return &Refusal{
				Section: "table", Offset: x.secs[secTable].pos, Rule: "table size",
				Saw: fmt.Sprint(t.min), Limit: fmt.Sprint(x.opt.MaxTable), Remedy: "use a smaller table",
			}
		}
	}
	return nil
}

// plan gives indices to what will be added.
func (x *rewriter) plan() {
	x.typeRefill = x.addType(FuncType{[]ValType{I32}, []ValType{I64}})
	x.typeOp = x.addType(FuncType{[]ValType{I32}, []ValType{I32}})
	x.typeSlow = x.addType(FuncType{[]ValType{I64, I64}, nil})
	x.typeBulk = x.addType(FuncType{[]ValType{I32, I32, I32}, nil})
	x.refill = uint32(x.nImpFuncs)
	x.slow = uint32(len(x.funcs)) + 1
	x.elemsFn, x.bytesFn, x.growFn, x.fillFn, x.copyFn = x.slow+1, x.slow+2, x.slow+3, x.slow+4, x.slow+5
	x.initFn = map[uint32]uint32{}
	for i, d := range x.data {
		if d.flags == dataPassive && len(d.bytes) > chunk && len(x.mems) > 0 && x.hasDataCount {
			x.initFn[uint32(i)] = x.copyFn + 1 + uint32(len(x.initFn))
		}
	}
	x.fuel = uint32(len(x.globals))
	x.depth = x.fuel + 1
}

// reference is the global that holds the reference of a function, which the engine so makes once: each
// ref.func that it runs allocates memory that lives as long as the instance. Only functions that occur
// outside of code may be referred to.
func (x *rewriter) reference(i uint32) (global uint32, ok bool) {
	if x.refGlobal == nil {
		x.refGlobal = x.declared()
	}
	global, ok = x.refGlobal[i]
	if ok && global == 0 {
		x.refs = append(x.refs, i)
		global = x.depth + uint32(len(x.refs))
		x.refGlobal[i] = global
	}
	return global, ok
}

// declared has the functions that occur outside of code.
func (x *rewriter) declared() map[uint32]uint32 {
	out := map[uint32]uint32{}
	note := func(c constExpr) {
		if c.op == opRefFunc {
			out[c.index] = 0
		}
	}
	for _, e := range x.exports {
		if e.Kind == KindFunc {
			out[e.index] = 0
		}
	}
	for _, g := range x.globals[x.nImpGlobals:] {
		note(g.init)
	}
	for _, e := range x.elems {
		for _, f := range e.funcs {
			out[f] = 0
		}
		for _, c := range e.exprs {
			note(c)
		}
	}
	return out
}

func (x *rewriter) addType(t FuncType) uint32 {
	x.newTypes = append(x.newTypes, t)
	return uint32(len(x.types) + len(x.newTypes) - 1)
}

// function is a function's index in the new module.
func (x *rewriter) function(i uint32) uint32 {
	if i >= uint32(x.nImpFuncs) {
		return i + 1
	}
	return i
}
