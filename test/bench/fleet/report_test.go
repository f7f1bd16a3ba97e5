package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrowth(t *testing.T) {
	run := func(seeds, shoots int, seconds, cpu float64, get latency) result {
		return result{Size: size{Seeds: seeds, Shoots: shoots}, Steps: []step{{
			Name: "seeds", Seconds: seconds, Processes: map[string]usage{"etcd": {RSS: 0.1, CPU: cpu}}, Latencies: map[string]latency{"get shoots": get},
		}}}
	}
	for name, tc := range map[string]struct {
		small, large result
		want         []factor
	}{
		"like the input": {
			run(1, 10, 2, 0.02, latency{Requests: 10, P50: 1, P99: 2}), run(10, 100, 21, 0.2, latency{Requests: 100, P50: 1, P99: 3}),
			[]factor{
				{"seeds: seconds", 2, 21, 10.5, false},
				{"seeds: CPU seconds of etcd", 0.02, 0.2, 10, false},
				{"seeds: requests get shoots", 10, 100, 10, false},
				{"seeds: p50 ms get shoots", 1, 1, 1, false},
				{"seeds: p99 ms get shoots", 2, 3, 1.5, false},
			},
		},
		"faster, even if it was too little to be measured before": {
			run(1, 10, 2, 0, latency{Requests: 10, P50: 1, P99: 2}), run(10, 100, 30, 0.5, latency{Requests: 100, P50: 1, P99: 2}),
			[]factor{
				{"seeds: seconds", 2, 30, 15, true},
				{"seeds: CPU seconds of etcd", 0, 0.5, 25, true},
				{"seeds: requests get shoots", 10, 100, 10, false},
				{"seeds: p50 ms get shoots", 1, 1, 1, false},
				{"seeds: p99 ms get shoots", 2, 2, 1, false},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, growth(tc.small, tc.large)); diff != "" {
				t.Errorf("growth() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJoined(t *testing.T) {
	steps := []step{
		{Name: "seeds"},
		{Name: "create shoots", Seconds: 2, Processes: map[string]usage{"etcd": {RSS: 10, CPU: 1}}, Latencies: map[string]latency{
			"create shoots": {Requests: 5, P50: 1, P99: 2}, "get secrets": {Requests: 1, P50: 3, P99: 3},
		}},
		{Name: "settle", Seconds: 3, Processes: map[string]usage{"etcd": {RSS: 12, CPU: 2}}, Latencies: map[string]latency{
			"get secrets": {Requests: 4, P50: 2, P99: 9}, "patch shoots": {Requests: 5, P50: 1, P99: 1},
		}},
		{Name: "calm"},
	}
	want := []step{
		{Name: "seeds"},
		{Name: "create shoots and settle", Seconds: 5, Processes: map[string]usage{"etcd": {RSS: 12, CPU: 3}}, Latencies: map[string]latency{
			"create shoots": {Requests: 5, P50: 1, P99: 2}, "get secrets": {Requests: 5, P50: 3, P99: 9}, "patch shoots": {Requests: 5, P50: 1, P99: 1},
		}},
		{Name: "calm"},
	}
	if diff := cmp.Diff(want, joined(steps)); diff != "" {
		t.Errorf("joined() (-want +got):\n%s", diff)
	}
}
