package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOutcome(t *testing.T) {
	begin := time.UnixMilli(1_000_000)
	at := func(millis int64) time.Time { return begin.Add(time.Duration(millis) * time.Millisecond) }
	requests := func(failed map[int64]string, all ...int64) map[int64]request {
		out := map[int64]request{}
		for _, millis := range all {
			out[at(millis).UnixMilli()] = request{at: at(millis), failure: failed[millis]}
		}
		return out
	}
	for name, tc := range map[string]struct {
		probers map[string]map[int64]request
		want    outcome
	}{
		"no requests": {},
		"all are answered": {
			probers: map[string]map[int64]request{"a": requests(nil, 0, 100, 200)}, want: outcome{requests: 3, gap: 100 * time.Millisecond},
		},
		"what was before and after does not count": {
			probers: map[string]map[int64]request{"a": requests(map[int64]string{-100: "no", 1100: "no"}, -100, 900, 1000, 1100)},
			want:    outcome{requests: 2, gap: 100 * time.Millisecond},
		},
		"some fail": {
			probers: map[string]map[int64]request{"a": requests(map[int64]string{100: "no", 200: "no", 400: "late"}, 0, 100, 200, 300, 400)},
			want:    outcome{requests: 5, failed: 3, gap: 300 * time.Millisecond, failures: map[string]int{"no": 2, "late": 1}},
		},
		"the longest gap is that of one prober": {
			probers: map[string]map[int64]request{"a": requests(nil, 0, 100), "b": requests(nil, 700, 900)},
			want:    outcome{requests: 4, gap: 200 * time.Millisecond},
		},
		"it does not end": {
			probers: map[string]map[int64]request{"a": requests(map[int64]string{100: "no", 500: "no"}, 0, 100, 500)},
			want:    outcome{requests: 3, failed: 2, gap: 500 * time.Millisecond, failures: map[string]int{"no": 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbes(nil)
			p.byProber = tc.probers
			got, _ := p.between(begin, at(1000))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}
