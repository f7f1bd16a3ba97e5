package hibernation

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gardener.cloud/gardener/pkg/flow"
)

// recorder records what is scaled down. One component may fail.
type recorder struct {
	fails string
	mu    sync.Mutex // components that do not depend on each other are scaled down at the same time
	// done are the components that were scaled down.
	done map[string]bool
}

// scale returns a function that scales a component down. It must come after some others.
func (r *recorder) scale(t *testing.T, name string, after ...string) func(context.Context) error {
	return func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, first := range after {
			if !r.done[first] {
				t.Errorf("%s is scaled down before %s", name, first)
			}
		}
		if name == r.fails {
			return errors.New("no answer")
		}
		r.done[name] = true
		return nil
	}
}

func TestControlPlaneIsScaledDownInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		workers bool
		fails   string
		titles  []string
		want    map[string]bool
	}{
		"with nodes": {
			workers: true,
			titles: []string{
				"Scaling down machine-controller-manager, kube-controller-manager and kube-scheduler", "Scaling down gardener-resource-manager",
				"Scaling down kube-apiserver and vpn-seed-server", "Scaling down etcd",
			},
			want: map[string]bool{
				"machine-controller-manager": true, "kube-controller-manager": true, "kube-scheduler": true, "gardener-resource-manager": true,
				"kube-apiserver": true, "vpn-seed-server": true,
				"etcd-main": true, "etcd-events": true,
			},
		},
		"workerless": {
			titles: []string{"Scaling down kube-controller-manager", "Scaling down gardener-resource-manager", "Scaling down kube-apiserver", "Scaling down etcd"},
			want: map[string]bool{
				"kube-controller-manager": true, "gardener-resource-manager": true, "kube-apiserver": true, "etcd-main": true, "etcd-events": true,
			},
		},
		"one that writes to the cluster still runs": {
			fails:  "gardener-resource-manager",
			titles: []string{"Scaling down kube-controller-manager", "Scaling down gardener-resource-manager", "Scaling down kube-apiserver", "Scaling down etcd"},
			want:   map[string]bool{"kube-controller-manager": true},
		},
		"kube-apiserver still runs": {
			workers: true, fails: "vpn-seed-server",
			titles: []string{
				"Scaling down machine-controller-manager, kube-controller-manager and kube-scheduler", "Scaling down gardener-resource-manager",
				"Scaling down kube-apiserver and vpn-seed-server", "Scaling down etcd",
			},
			want: map[string]bool{
				"machine-controller-manager": true, "kube-controller-manager": true, "kube-scheduler": true, "gardener-resource-manager": true,
				"kube-apiserver": true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{fails: tc.fails, done: map[string]bool{}}
			in := Inputs{
				KubeControllerManager: r.scale(t, "kube-controller-manager", "others"),
				ResourceManager:       r.scale(t, "gardener-resource-manager", "others"),
				KubeAPIServer:         r.scale(t, "kube-apiserver", "kube-controller-manager", "gardener-resource-manager"),
				EtcdMain:              r.scale(t, "etcd-main", "kube-apiserver"),
				EtcdEvents:            r.scale(t, "etcd-events", "kube-apiserver"),
			}
			if tc.workers {
				in.KubeScheduler = r.scale(t, "kube-scheduler", "others")
				in.MachineControllerManager = r.scale(t, "machine-controller-manager", "others")
				in.TunnelServer = r.scale(t, "vpn-seed-server", "kube-controller-manager", "kube-scheduler", "gardener-resource-manager")
			}
			others := []flow.Task{{ID: "first", Run: r.scale(t, "first")}, {ID: "others", Run: r.scale(t, "others", "first"), After: []string{"first"}}}
			tasks := Tasks(in, others)
			var titles []string
			for i := range tasks {
				titles = append(titles, tasks[i].Title)
				tasks[i].Retry.Steps = 0 // a failure stays
			}
			if diff := cmp.Diff(tc.titles, titles); diff != "" {
				t.Errorf("titles (-want +got):\n%s", diff)
			}
			f, err := flow.New("test", append(others, tasks...)...)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // an interrupted run begins again
				if _, err := f.Run(t.Context(), flow.Options{}); (err != nil) != (tc.fails != "") {
					t.Errorf("Run() is %v", err)
				}
			}
			delete(r.done, "first")
			delete(r.done, "others")
			if diff := cmp.Diff(tc.want, r.done); diff != "" {
				t.Errorf("components that are scaled down (-want +got):\n%s", diff)
			}
		})
	}
}
