package journal

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/wevalr/wevalr/host/stats"
)

const summaryFormat = "wevalr.summary/1"

// Summary is summary.json. The names are fixed; more may be added.
type Summary struct {
	Format string     `json:"format"` // filled in
	Run    SummaryRun `json:"run"`    // filled in
	Counts
	Failures []FailureCount `json:"failures"`
	// Scores is by "<plugin>.<scorer>[.<name>]", Rewards by the server's own names.
	Scores    map[string]stats.Estimate `json:"scores"`
	Rewards   map[string]stats.Estimate `json:"rewards"`
	Usage     Usage                     `json:"usage"`
	Server    SummaryServer             `json:"server"`
	Plugins   []SummaryPlugin           `json:"plugins"`
	DurationS float64                   `json:"duration_s"`
	ExitCode  int                       `json:"exit_code"`
}

// SummaryRun says which run it is.
type SummaryRun struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Dir      string `json:"dir"`
	Attempts int    `json:"attempts"`
}

// SummaryServer lists the env-servers that ended.
type SummaryServer struct {
	Generations []Generation `json:"generations"`
}

// SummaryPlugin is one plugin; Name is its alias.
type SummaryPlugin struct {
	Name    string `json:"name"`
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	ABI     string `json:"abi"`
}

// WriteSummary writes summary.json atomically. Format and Run are filled in; empty lists are written
// as such, not as null.
func (r *Run) WriteSummary(s Summary) error {
	s.Format = summaryFormat
	s.Run = SummaryRun{r.ID(), r.identity.Name, r.dir, r.Attempt()}
	s.Failures = append([]FailureCount{}, s.Failures...)
	s.Plugins = append([]SummaryPlugin{}, s.Plugins...)
	s.Server.Generations = append([]Generation{}, s.Server.Generations...)
	if s.Scores == nil {
		s.Scores = map[string]stats.Estimate{}
	}
	if s.Rewards == nil {
		s.Rewards = map[string]stats.Estimate{}
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("journal: summary: %w", err)
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return ErrClosed
	}
	return r.disk.Replace(SummaryFile, func(w io.Writer) error {
		_, err := w.Write(append(raw, '\n'))
		return err
	})
}
