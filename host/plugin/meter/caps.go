package meter

import (
	"cmp"
	"fmt"
)

// Caps bound what a module may hold. A field of zero means its default, which is some ten times
// what a large Go guest needs. Sizes per function alone do not bound their sum: Cost does.
type Caps struct { //nolint:recvcheck // a value to all but the one method that fills in defaults
	Bytes     int // the file; 32 MiB
	Types     int // 10,000
	Params    int // of a type; 100
	Results   int // of a type; 16
	Imports   int // 1,000
	Functions int // 50,000
	Globals   int // 10,000
	Exports   int // 10,000
	Tables    int // 4
	Entries   int // minimum size of a table; 65,536
	Elements  int // element segments; 10,000
	Inits     int // entries of all element segments; 1,048,576
	Data      int // data segments; 200,000
	Locals    int // of a function, parameters included; 4,096
	Depth     int // of nested blocks; 4,096
	BrTable   int // labels of one br_table; 16,384
	Blocks    int // of a function; 4,000
	Body      int // bytes of a function; 1 MiB
	// Cost is the estimated time to compile the module with one worker, in nanoseconds; 15 s. FuncCost is
	// that of a function, 4 s: what the compiler holds for it in memory follows it.
	Cost, FuncCost uint64
}

// filled gives every field its value.
func (c Caps) filled() *Caps {
	fill := func(field *int, def int) {
		if *field == 0 {
			*field = def
		}
	}
	fill(&c.Bytes, 32<<20)
	fill(&c.Types, 10_000)
	fill(&c.Params, 100)
	fill(&c.Results, 16)
	fill(&c.Imports, 1_000)
	fill(&c.Functions, 50_000)
	fill(&c.Globals, 10_000)
	fill(&c.Exports, 10_000)
	fill(&c.Tables, 4)
	fill(&c.Entries, 65_536)
	fill(&c.Elements, 10_000)
	fill(&c.Inits, 1<<20)
	fill(&c.Data, 200_000)
	fill(&c.Locals, 4_096)
	fill(&c.Depth, 4_096)
	fill(&c.BrTable, 16_384)
	fill(&c.Blocks, 4_000)
	fill(&c.Body, 1<<20)
	c.Cost, c.FuncCost = cmp.Or(c.Cost, 15e9), cmp.Or(c.FuncCost, 4e9)
	return &c
}

// cap refuses more than limit.
func (r *reader) cap(at int, rule string, saw, limit int, remedy string) {
	if saw > limit && r.err == nil {
		r.fail(at, rule, fmt.Sprint(saw))
		r.err.Limit, r.err.Remedy = fmt.Sprint(limit), remedy
	}
}

const remedySmaller = "make the module smaller: strip it, leave out what it does not use"

// section caps the number of things in a section.
func (c *Caps) section(r *reader, at int, id byte, n int) {
	if c == nil {
		return
	}
	limit := [numSections]int{
		secType: c.Types, secImport: c.Imports, secFunction: c.Functions, secTable: c.Tables, secMemory: 1,
		secGlobal: c.Globals, secExport: c.Exports, secElement: c.Elements, secCode: c.Functions, secData: c.Data,
	}[id]
	r.cap(at, sectionName(id)+" count", n, limit, remedySmaller)
}

func (c *Caps) entries(r *reader, at, n int) {
	if c != nil {
		r.cap(at, "element entries", n, c.Inits, remedySmaller)
	}
}

func (c *Caps) signature(r *reader, at int, t FuncType) {
	if c != nil {
		r.cap(at, "parameters", len(t.Params), c.Params, "pass values through memory")
		r.cap(at, "results", len(t.Results), c.Results, "pass values through memory")
	}
}
