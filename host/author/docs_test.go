package author

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The author's guide lists what there is: findings, the ABI's functions with their types, the template's
// rule. Its commands are run by the tests of cmd/wevalr.
func TestGuide(t *testing.T) {
	guide := read(t, filepath.Join(root, "docs/plugins.md"))
	inCode := unique(regexp.MustCompile(`"(WV\d{3})", (Error|Warning|Note)|: "(WV\d{3})"`).FindAllString(read(t, "check.go"), -1))
	inGuide := unique(regexp.MustCompile("(?m)^\\| `(WV\\d{3})` \\|").FindAllString(guide, -1))
	if !slices.Equal(inCode, inGuide) {
		t.Errorf("findings: the guide has %v, the code %v", inGuide, inCode)
	}
	_, code, _ := strings.Cut(guide, "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if code == "" || !strings.Contains(read(t, "templates/go-scorer/main.go.tmpl"), code) {
		t.Errorf("the rule is not the template's: %s", code)
	}
	wat := read(t, filepath.Join(root, "plugins/abi/abi.wat"))
	functions := regexp.MustCompile(`(?s)\((?:import "wevalr_v1" |func \(export )"(\w+)"(.*?)\n`).FindAllStringSubmatch(strings.ReplaceAll(wat, "\"\n", "\" "), -1)
	if len(functions) < 15 {
		t.Fatalf("abi.wat: got %d functions", len(functions))
	}
	for _, f := range functions {
		var params []string
		for _, p := range regexp.MustCompile(`\(param \$\w+ (i32|i64)\)`).FindAllStringSubmatch(f[2], -1) {
			params = append(params, p[1])
		}
		result := "()"
		if r := regexp.MustCompile(`\(result (i32|i64)\)`).FindStringSubmatch(f[2]); r != nil {
			result = r[1]
		}
		row := regexp.MustCompile("(?m)^\\| `" + f[1] + "`[^|]* \\| `" + regexp.QuoteMeta("("+strings.Join(params, ", ")+") -> "+result) + "` \\|.* 1\\.0 \\|$")
		if !row.MatchString(guide) {
			t.Errorf("the guide has no row for %s (%s) -> %s", f[1], strings.Join(params, ", "), result)
		}
	}
}

// unique gives the finding codes in some matches, sorted.
func unique(matches []string) []string {
	code := regexp.MustCompile(`WV\d{3}`)
	var out []string
	for _, m := range matches {
		out = append(out, code.FindString(m))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
