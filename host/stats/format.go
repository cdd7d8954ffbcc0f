package stats

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Format prints an estimate for a person, `0.5625 ± 0.0137 [0.536, 0.589] n=1319/1319`: mean and
// standard error to the third significant digit of the error, the interval to the second, then
// scored/(planned - null). What does not exist is left out; no score at all prints "none".
func Format(e Estimate) string {
	var b strings.Builder
	digits := 4
	if e.SE != nil && *e.SE > 0 {
		digits = min(max(2-int(math.Floor(math.Log10(*e.SE))), 2), 15)
	}
	switch {
	case e.Mean == nil:
		b.WriteString("none")
	case e.SE == nil:
		b.WriteString(fixed(*e.Mean, digits))
	default:
		fmt.Fprintf(&b, "%s ± %s", fixed(*e.Mean, digits), fixed(*e.SE, digits))
	}
	if e.CI != nil {
		fmt.Fprintf(&b, " [%s, %s]", fixed(e.CI[0], digits-1), fixed(e.CI[1], digits-1))
	}
	fmt.Fprintf(&b, " n=%d/%d", e.Scored, e.Scored+e.Missing)
	return b.String()
}

func fixed(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-") // no minus zero
	}
	return s
}
