package wave

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A wave has passed when its seeds have been as healthy as before for the whole time, without a break.
func TestAwait(t *testing.T) {
	const soak, timeout = 10 * time.Minute, time.Hour
	for name, tc := range map[string]struct {
		// healthy are the minutes at which the shoot of the seed turns from unhealthy to healthy, and back, and so on.
		healthy []time.Duration
		// behind is until which minute the watch does not have changes: then it has the last one.
		behind time.Duration
		passes time.Duration // when. It does not if zero
		err    string
	}{
		"healthy":                             {healthy: []time.Duration{0}, passes: 10},
		"healthy after some time":             {healthy: []time.Duration{20}, passes: 30},
		"a break begins it again":             {healthy: []time.Duration{0, 5, 8}, passes: 18},
		"a break at last":                     {healthy: []time.Duration{0, 5, 55}, err: "the wave is healthy, but 1h0m0s are too short"},
		"never":                               {err: `waited 1h0m0s for seed "a": 0 of 1 shoots are healthy, and 1 of 1 were before`},
		"healthy only for a while":            {healthy: []time.Duration{0, 5}, err: `waited 1h0m0s for seed "a": 0 of 1 shoots`},
		"healthy again and again":             {healthy: []time.Duration{0, 9, 10, 19, 20, 29, 30}, passes: 40},
		"unhealthy, which is not watched yet": {healthy: []time.Duration{0, 5}, behind: 15, err: `waited 1h0m0s for seed "a": 0 of 1 shoots`},
		"a break that is not watched yet":     {healthy: []time.Duration{0, 5, 12}, behind: 11, passes: 22},
		"healthy at the last possible minute": {healthy: []time.Duration{49}, passes: 59},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := landscapeOf(own("a", latest, latest))
				setMark(l.gardenlets["a"], latest, map[string]health{"a": {At: metav1.NewTime(now), Shoots: 1, Healthy: 1}})
				w := &watcher{changed: make(chan struct{}, 1), view: view{landscape: *l, shoots: map[string][]*metav1.PartialObjectMetadata{"a": shoots("unhealthy")}}}
				begin := time.Now()
				current := "unhealthy"
				watched := func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.view.shoots["a"] = shoots(current)
					w.changed <- struct{}{}
				}
				w.fresh = func(context.Context) (*view, error) {
					w.mu.Lock()
					defer w.mu.Unlock()
					return &view{landscape: *l, shoots: map[string][]*metav1.PartialObjectMetadata{"a": shoots(current)}}, nil
				}
				for i, at := range tc.healthy {
					timer := time.AfterFunc(at*time.Minute, func() {
						w.mu.Lock()
						current = []string{"healthy", "unhealthy"}[i%2]
						w.mu.Unlock()
						if i == 0 || at >= tc.behind {
							watched()
						}
					})
					defer timer.Stop()
				}
				if tc.behind > 0 {
					timer := time.AfterFunc(tc.behind*time.Minute, watched)
					defer timer.Stop()
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, errTimeout)
				defer cancel()
				u := &Upgrade{Selection: Selection{Target: target(t, latest, "")}, Soak: soak, Timeout: timeout, Report: func(string, string) {}}
				err := u.await(ctx, w, Wave{Gardenlets: []Gardenlet{{Seed: "a"}}}, nil)
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("the error is %v, want %q", err, tc.err)
					}
					return
				}
				if took := time.Since(begin); err != nil || took != tc.passes*time.Minute {
					t.Errorf("passes after %s, %v; want %s", took, err, tc.passes*time.Minute)
				}
			})
		})
	}
}

// An interruption is no failure of a seed.
func TestAwaitInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &watcher{changed: make(chan struct{}, 1), view: view{landscape: *landscapeOf(own("a", latest, former))}}
	u := &Upgrade{Selection: Selection{Target: target(t, latest, "")}, Soak: time.Minute, Timeout: time.Hour, Report: func(string, string) {}}
	if err := u.await(ctx, w, Wave{Gardenlets: []Gardenlet{{Seed: "a"}}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
