package clusterautoscaler

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
)

func TestParse(t *testing.T) {
	environment := func(key string) string {
		return map[string]string{"CONTROL_NAMESPACE": "shoot--a--b", "TARGET_KUBECONFIG": "/env"}[key]
	}
	o, err := Parse([]string{
		"--address=:8085", "--cloud-provider=mcm", "--stderrthreshold=info", "--v=2", "--skip-nodes-with-system-pods=false",
		"--expander=priority,least-waste", "--ignore-taint=a", "--startup-taint=b", "--startup-taint=c", "--scale-down-utilization-threshold=0.600000",
		"--nodes=1:5:shoot--a--b.shoot--a--b-w-z1", "--nodes=0:0:shoot--a--b.none",
	}, environment, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]NodesOption{{Min: 1, Max: 5, Namespace: "shoot--a--b", Name: "shoot--a--b-w-z1"}}, o.Nodes); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "c", "a"}, []string(o.startupTaints)); diff != "" {
		t.Errorf("startup taints (-want +got):\n%s", diff)
	}
	if o.Kubeconfig != "/env" || o.rules.KeepSystemPods || !o.rules.KeepLocalStorage || o.defaults.UtilizationThreshold != 0.6 || o.scanInterval != 10*time.Second {
		t.Errorf("unexpected options: %+v", o)
	}
	// The gardenlet does not set it, neither for the original.
	if !o.rules.KeepCustomControllerPods {
		t.Error("pods of controllers that are not built in do not keep their nodes")
	}
	// The gardenlet sets only the total.
	for args, want := range map[string]plan.Rules{
		"--max-scale-down-parallelism=50": {MaxTotal: 50}, "--max-empty-bulk-delete=20": {MaxTotal: 10, MaxEmpty: 20},
	} {
		o, err := Parse([]string{args}, environment, io.Discard)
		if got := (plan.Rules{MaxTotal: o.rules.MaxTotal, MaxEmpty: o.rules.MaxEmpty}); err != nil || got != want {
			t.Errorf("%s: nodes at a time are %+v, want %+v, %v", args, got, want, err)
		}
	}
	for args, want := range map[string]time.Duration{"--scan-interval=0s": time.Second, "--scan-interval=1500ms": 1500 * time.Millisecond} {
		if o, err := Parse([]string{args}, environment, io.Discard); err != nil || o.scanInterval != want {
			t.Errorf("%s: the interval is %s, want %s, %v", args, o.scanInterval, want, err)
		}
	}
	for args, want := range map[string]string{
		"--nodes=5:1:shoot--a--b.x":              "minimum must not be negative, nor above the maximum",
		"--nodes=1:5:x":                          "must be MIN:MAX:NAMESPACE.NAME",
		"--nodes=1:5:other.x":                    "the namespace must be CONTROL_NAMESPACE",
		"--cloud-provider=aws":                   "--cloud-provider must be mcm",
		"--expander=cheapest":                    `unknown expander "cheapest"`,
		"--expander=random,random":               "occurs twice",
		"--scale-down-utilization-threshold=1.5": "must be between 0 and 1",
		"--scan-interval=-1s":                    "--scan-interval must not be negative",
		"--unknown":                              "not defined",
		"argument":                               "unexpected argument",
	} {
		if _, err := Parse([]string{args}, environment, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
