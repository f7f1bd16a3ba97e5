package flow

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestCriticalPath(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ran := func(id string, start, end int, after ...string) Timing {
		return Timing{ID: id, Start: begin.Add(time.Duration(start) * time.Second), End: begin.Add(time.Duration(end) * time.Second), After: after}
	}
	for name, tc := range map[string]struct {
		timings []Timing
		want    []string
	}{
		"nothing ran": {},
		"it ends with the task that ended last, in any order": {
			timings: []Timing{ran("c", 5, 9, "a", "b"), ran("a", 0, 5), ran("b", 0, 2), ran("d", 2, 8, "b")},
			want:    []string{"a", "c"},
		},
		"a long task without dependants is not on it": {
			timings: []Timing{ran("long", 0, 8), ran("a", 0, 1), ran("b", 1, 9, "a")},
			want:    []string{"a", "b"},
		},
		"a task that did not run is ignored":  {timings: []Timing{ran("b", 1, 9, "gone")}, want: []string{"b"}},
		"the first of two that ended at once": {timings: []Timing{ran("a", 0, 1), ran("b", 0, 1), ran("c", 1, 2, "a", "b")}, want: []string{"a", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, step := range CriticalPath(tc.timings) {
				got = append(got, step.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("CriticalPath() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimingsGoThroughALog(t *testing.T) {
	var out bytes.Buffer
	log := zap.New(zap.WriteTo(&out), zap.JSONEncoder()).WithValues("namespace", "garden-a", "name", "b", "reconcileID", "1")
	log.Info("Beginning operation", "flow", "make")
	ended := LogTimings(log, "make")
	start := time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)
	timings := []Timing{
		{ID: "a", Start: start, End: start.Add(1234567 * time.Nanosecond), After: []string{"x", "y"}},
		{ID: "b", Start: start, End: start},
		{ID: "c", Start: start, End: start.Add(time.Minute), Err: errors.New("no quota")},
	}
	want := make([]LoggedTiming, 0, len(timings))
	for _, timing := range timings {
		ended(timing)
		want = append(want, LoggedTiming{Timing: timing, Flow: "make", Namespace: "garden-a", Name: "b", ReconcileID: "1"})
	}
	out.WriteString("no JSON\n{\"msg\":\"Ended task\",\"took\":\"soon\"}\n{\"msg\":\"Ended") // the last line is cut off
	got, err := ReadTimings(&out)
	if err != nil {
		t.Fatal(err)
	}
	sameText := cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error()) })
	if diff := cmp.Diff(want, got, sameText, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ReadTimings() (-want +got):\n%s", diff)
	}
}
