package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gardener.cloud/gardener/landscape"
)

func TestPrintStatus(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	conditions := []landscape.ConditionStatus{{Type: "A", Status: "True"}, {Type: "B", Status: "False"}}
	status := &landscape.Status{
		Name: "local", Dir: "/dir", Subnet: "172.30.0.0/24", Registry: "172.30.0.1:5000",
		Containers: []landscape.ServiceStatus{{Name: "registry", Running: true}},
		Garden: &landscape.GardenStatus{
			Components: []landscape.ComponentStatus{
				{Cluster: "runtime", Namespace: "garden", Name: "gardenlet", Version: "v1", Usage: landscape.ComponentUsage{Proportional: 57 << 20}},
				{Cluster: "local-2", Namespace: "gateway", Name: "gateway", Version: "v1", Problem: "0 of 1 pods are ready"},
			},
			Seeds: []landscape.SeedStatus{{Name: "local", Version: "v1", Kubernetes: "v1.36.3", Conditions: conditions, Problem: "B is False"}},
			Shoots: []landscape.ShootStatus{{
				Namespace: "garden-local", Name: "local", Seed: "local-2", Kubernetes: "1.36.3", LastOperation: "Create Processing 89%, Waiting", Conditions: conditions,
				Problem: "Create Processing 89%, Waiting", Machines: 2, MachinesReady: 1, Created: now.Add(-90 * time.Second),
				ControlPlane: []landscape.ComponentUsage{{Component: "etcd-main", Pods: 1, Proportional: 5 << 20, Processor: 1.5}},
			}},
		},
		Memory:   []landscape.MemoryStatus{{Program: "etcd", Processes: 2, Proportional: 5 << 20}},
		Problems: []string{"seed local: B is False"},
	}
	want := `Landscape local in /dir, network 172.30.0.0/24, registry 172.30.0.1:5000

registry   running

COMPONENT   CLUSTER   NAMESPACE   VERSION   MEMORY   STATE
gardenlet   runtime   garden      v1        57 MiB   healthy
gateway     local-2   gateway     v1        0 MiB    0 of 1 pods are ready

SEED    GARDENER   KUBERNETES   CONDITIONS   STATE
local   v1         v1.36.3      1/2          B is False

SHOOT                SEED      KUBERNETES   LAST OPERATION          CONDITIONS   NODES   AGE   CONTROL PLANE   MACHINES   STATE
garden-local/local   local-2   1.36.3       Create Processing 89%   1/2          1/2     90s   5 MiB           0 MiB      Create Processing 89%, Waiting

All 2 processes together take 5 MiB of memory.

Problems:
  seed local: B is False
`
	var out strings.Builder
	if err := printStatus(&out, status, "", now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
