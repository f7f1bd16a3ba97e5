package unitcheck

import (
	"testing"
	"time"

	"gardener.cloud/gardener/internal/nodeagent/systemd"
)

func TestProblem(t *testing.T) {
	now := time.Unix(10000, 0)
	for name, tc := range map[string]struct {
		state systemd.State
		want  string
	}{
		"runs":                {state: systemd.State{Load: "loaded", Active: "active"}},
		"has done its work":   {state: systemd.State{Load: "loaded", Active: "inactive"}},
		"is not wanted":       {state: systemd.State{Load: "masked", Active: "inactive"}},
		"is not there":        {state: systemd.State{Load: "not-found", Active: "inactive"}, want: "does not exist"},
		"failed":              {state: systemd.State{Load: "loaded", Active: "failed"}, want: "failed"},
		"starts":              {state: systemd.State{Load: "loaded", Active: "activating", Since: now.Add(-time.Minute)}},
		"starts for ever":     {state: systemd.State{Load: "loaded", Active: "activating", Since: now.Add(-time.Hour)}, want: "is stuck in activating"},
		"stops, and does not": {state: systemd.State{Load: "loaded", Active: "deactivating", Since: now.Add(-time.Hour)}, want: "is stuck in deactivating"},
		"has run for an hour": {state: systemd.State{Load: "loaded", Active: "active", Since: now.Add(-time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := problem(tc.state, now, 5*time.Minute); got != tc.want {
				t.Errorf("problem() = %q, want %q", got, tc.want)
			}
		})
	}
}
