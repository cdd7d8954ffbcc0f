package meter

import (
	"bytes"
	"cmp"
	"slices"
)

// mergeGap is how many zero bytes are written out rather than starting another data segment: the
// engine evaluates an expression for each at every instantiation, and Go's linker emits tens of
// thousands.
const mergeGap = 1024

// mergeData is the new data section, and whether its number of segments changed. Segments are
// merged when nobody could tell: they are active at constant offsets in the module's own memory,
// inside its minimum, do not overlap, and no instruction names one.
func (x *rewriter) mergeData() (s []byte, merged bool) {
	old := x.content(secData)
	if len(x.data) < 2 || x.segmentsUsed || len(x.mems) != 1 || x.nImpMems > 0 {
		return old, false
	}
	size := int64(x.mems[0].min) << 16
	segs := make([]segment, 0, len(x.data))
	for _, d := range x.data {
		start := int64(uint32(d.offset.i32))
		if d.flags == dataPassive || d.offset.op != opI32Const || start+int64(len(d.bytes)) > size {
			return old, false
		}
		if len(d.bytes) > 0 {
			segs = append(segs, d)
		}
	}
	start := func(d segment) int64 { return int64(uint32(d.offset.i32)) }
	slices.SortStableFunc(segs, func(a, b segment) int { return cmp.Compare(start(a), start(b)) })
	var runs int
	var body []byte
	room := int64(len(old)) // for zero bytes, so that sparse data do not become a hundred times as many
	for i := 0; i < len(segs); {
		from, run := start(segs[i]), []byte(nil)
		for ; i < len(segs); i++ {
			gap := start(segs[i]) - from - int64(len(run))
			if gap < 0 {
				return old, false // overlapping: the order matters
			}
			if gap > min(mergeGap, room) {
				break
			}
			room -= gap
			run = append(append(run, make([]byte, gap)...), segs[i].bytes...)
		}
		runs++
		body = appendRun(body, uint32(from), run)
	}
	return append(appendU32(nil, uint32(runs)), body...), true
}

func appendRun(s []byte, at uint32, run []byte) []byte {
	s = appendS64(append(s, 0, opI32Const), int64(int32(at)))
	return appendBytes(append(s, opEnd), bytes.TrimRight(run, "\x00"))
}
