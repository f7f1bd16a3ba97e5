package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/test/bench/shoot/timeline"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func shootNamed(name string) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{}
	shoot.Namespace, shoot.Name = "garden-local", name
	return shoot
}

func TestReport(t *testing.T) {
	r := &report{
		Computer: computer{Processors: 2, Model: "Abacus", Memory: 24 << 30, Load: 0.25, Busy: 12.4}, Manifest: "shoot.yaml", AtOnce: 2, Rounds: 1,
		ControlPlanes: 2, ControlPlane: []landscape.ComponentUsage{
			{Component: "kube-apiserver", Pods: 2, Proportional: 400 << 20, Processor: 10}, {Component: "etcd-main", Pods: 2, Proportional: 100 << 20, Processor: 3},
		},
		Nodes: 1, Node: []landscape.ComponentUsage{{Component: "kubelet", Pods: 1, Proportional: 90 << 20, Processor: 1.5}},
	}
	creations := []*creation{
		{shoot: shootNamed("b0"), times: times{answer: 9 * time.Second, healthy: 12 * time.Second, gone: 8 * time.Second}},
		{shoot: shootNamed("b1"), times: times{answer: 11 * time.Second}, failed: map[string]string{"etcd-main": "task \"etcd-main\":\nno disk"}, err: errors.New("stuck")},
	}
	r.allHealthy(creations, time.Minute)
	r.add(creations)
	var out bytes.Buffer
	if err := formats["markdown"](&out, r); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
shoot.yaml, 2 at once, once, on 2 processors (Abacus), 24 GiB of memory; before the start, the load was 0.2 and 12% of the processors' time in use.
1 of 2 shoots became healthy, 1 tasks failed meanwhile.

- shoot "b1": task "etcd-main": no disk

| after the creation | median | best | worst | of |
|---|---|---|---|---|
| first API response | 11.0 s | 9.0 s | 11.0 s | 2 |
| healthy | 12.0 s | 12.0 s | 12.0 s | 1 |
| deleted, after the request | 8.0 s | 8.0 s | 8.0 s | 1 |

| component of 2 control planes | how many | memory (PSS) | CPU since start |
|---|---|---|---|
| kube-apiserver | 2 | 400 MiB | 10.0 s |
| etcd-main | 2 | 100 MiB | 3.0 s |
| total | 4 | 500 MiB | 13.0 s |
| per control plane | 2.0 | 250 MiB | 6.5 s |

| component of a node | how many | memory (PSS) | CPU since start |
|---|---|---|---|
| kubelet | 1 | 90 MiB | 1.5 s |
| total | 1 | 90 MiB | 1.5 s |
`, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
	out.Reset()
	if err := formats["json"](&out, r); err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &back); diff != "" {
		t.Errorf("JSON and back (-want +got):\n%s", diff)
	}
}

func TestAllHealthy(t *testing.T) {
	r := &report{}
	well := &creation{times: times{healthy: time.Second}}
	r.allHealthy([]*creation{well}, time.Second)
	r.allHealthy([]*creation{well, {}}, time.Second)
	r.allHealthy([]*creation{well, well}, 3*time.Second)
	if diff := cmp.Diff([]timing{{"all 2 healthy", []float64{3}}}, r.Times); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}

func TestBusyShare(t *testing.T) {
	const before = "cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3\n"
	for after, want := range map[string]float64{
		"cpu  150 0 125 770 105 0 0 0 99 0\n": 50,
		"cpu  100 0 100 800 100 0 0 0 50 0\n": 0,
		before:                                0, // no time has passed
	} {
		if got := busyShare([]byte(before), []byte(after)); got != want {
			t.Errorf("share until %q is %v, want %v", after, got, want)
		}
	}
}

func TestProgram(t *testing.T) {
	for name, want := range map[string]string{
		"init": "operating system", "systemd-logind": "operating system", "containerd-shim-runc-v2": "containerd-shim", "containerd": "containerd", "kubelet": "kubelet",
	} {
		if got := program(name); got != want {
			t.Errorf("program(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestChart(t *testing.T) {
	ran := func(run, name, task string, second int, err error) flow.LoggedTiming {
		at := begin.Add(time.Duration(second) * time.Second)
		return flow.LoggedTiming{
			Namespace: "garden-local", Name: name, ReconcileID: run, Timing: flow.Timing{ID: task, Start: at, End: at.Add(time.Second), Err: err},
		}
	}
	c := &creation{shoot: shootNamed("b0"), begin: begin, times: times{healthy: 9 * time.Second}}
	for name, tc := range map[string]struct {
		timings []flow.LoggedTiming
		title   string
		tasks   []string
		fails   bool
	}{
		"other shoots and an older one of the name do not count": {
			timings: []flow.LoggedTiming{ran("0", "b0", "old", -5, nil), ran("1", "b1", "other", 1, nil)}, fails: true,
		},
		"the run that made it": {
			timings: []flow.LoggedTiming{
				ran("1", "b0", "a", 1, nil), ran("1", "b1", "x", 1, nil), ran("1", "b0", "b", 2, errors.New("no")), ran("2", "b0", "a", 3, nil),
				ran("2", "b0", "b", 3, nil), ran("3", "b0", "later", 8, nil),
			},
			title: "Creation of a shoot: healthy after 9.0 s (run 2)", tasks: []string{"a", "b"},
		},
		"the first run made it": {timings: []flow.LoggedTiming{ran("1", "b0", "a", 1, nil)}, title: "Creation of a shoot: healthy after 9.0 s", tasks: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chart(c, tc.timings)
			if (err != nil) != tc.fails {
				t.Fatalf("error is %v", err)
			}
			if tc.fails {
				return
			}
			var tasks []string
			for _, task := range got.Tasks {
				tasks = append(tasks, task.ID)
			}
			if diff := cmp.Diff(tc.tasks, tasks); diff != "" || got.Title != tc.title {
				t.Errorf("%q with tasks (-want +got):\n%s", got.Title, diff)
			}
			if diff := cmp.Diff([]timeline.Mark{{Text: "healthy", At: begin.Add(9 * time.Second)}}, got.Marks); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}
