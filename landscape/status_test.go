package landscape

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each part of a landscape that is not healthy is named, and healthy parts are not.
func TestProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		status Status
		want   []string
	}{
		"all is healthy": {
			status: Status{
				Containers: []ServiceStatus{{Name: "registry", Running: true}},
				Clusters:   []ClusterStatus{{Name: "runtime", Machines: []MachineStatus{{Name: "runtime-0", Running: true, Ready: true}}}},
				Garden:     &GardenStatus{Components: []ComponentStatus{{Name: "gardenlet"}}, Seeds: []SeedStatus{{}}, Shoots: []ShootStatus{{}}},
			},
		},
		"no garden": {
			status: Status{Clusters: []ClusterStatus{{Name: "runtime", Problem: "no answer"}}},
			want:   []string{"cluster runtime: no answer"},
		},
		"nothing is healthy": {
			status: Status{
				Containers: []ServiceStatus{{Name: "registry"}},
				Clusters: []ClusterStatus{{
					Name: "runtime", Machines: []MachineStatus{{Name: "runtime-0", Problem: "the machine does not run"}},
					Unready: []PodStatus{{Namespace: "kube-system", Name: "a", Problem: `Pod "a" is not ready`}},
				}},
				Garden: &GardenStatus{
					Problem:    "no seeds",
					Components: []ComponentStatus{{Cluster: "runtime", Namespace: "garden", Name: "gardenlet", Problem: "0 pods"}},
					Seeds:      []SeedStatus{{Name: "local", Problem: "no contact"}},
					Shoots:     []ShootStatus{{Namespace: "garden-a", Name: "b", Problem: "Create Failed"}},
				},
			},
			want: []string{
				"service registry: it does not run", "machine runtime-0: the machine does not run",
				`namespace kube-system of cluster runtime: Pod "a" is not ready`, "garden: no seeds", "component garden/gardenlet of cluster runtime: 0 pods",
				"seed local: no contact", "shoot garden-a/b: Create Failed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.status.problems()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
