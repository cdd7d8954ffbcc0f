package author

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// grease adds fields that no version of the ABI has, with values of every kind, to every struct of a
// request: a guest treats an unknown field as absent. What is the author's own data is left as it is.
func grease(v any, r *rand.Rand) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range x {
			if slices.Contains(dataFields(), k) {
				out[k] = e
			} else {
				out[k] = grease(e, r)
			}
		}
		for range 1 + r.IntN(3) {
			out[fmt.Sprintf("%c_grease_%d", 'a'+rune(r.IntN(26)), r.IntN(1e6))] = greaseValue(r, 0)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = grease(e, r)
		}
		return out
	}
	return v
}

// dataFields are maps of somebody's own keys, where an unknown one is no field.
func dataFields() []string {
	return []string{"data", "metadata", "target", "info", "rewards", "metrics", "timing", "options"}
}

func greaseValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return r.Int64() - r.Int64()
	case n == 3:
		return r.NormFloat64()
	case n == 4 && depth < 3:
		return []any{greaseValue(r, depth+1), greaseValue(r, depth+1)}
	case n == 5 && depth < 3:
		return map[string]any{"ok": greaseValue(r, depth+1), "": greaseValue(r, depth+1)}
	}
	return fmt.Sprintf("grease %d ü", r.Int64())
}
