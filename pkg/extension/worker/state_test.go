package worker

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// The state is that of the original: {"state":"<base64 of gzip>"}. A plain one is read, too.
func TestState(t *testing.T) {
	want := &State{MachineDeployments: map[string]*DeploymentState{"a": {Replicas: 3, Machines: []machinev1alpha1.Machine{{}}}}}
	raw, err := EncodeState(want)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(raw), `{"state":"H4sI`) {
		t.Errorf("the state is not compressed: %s", raw)
	}
	got, err := DecodeState(raw)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err = DecodeState([]byte(`{"machineDeployments":{"a":{"replicas":3}}}`)); err != nil || got.MachineDeployments["a"].Replicas != 3 {
		t.Errorf("a plain state is %v, %v", got, err)
	}
	for name, raw := range map[string]string{
		"nothing": "{}", "no object": `"~secret~"`, "not compressed": `{"state":"fnNlY3JldH4="}`, "no state": `{"machineDeployments":"~secret~"}`,
	} {
		if _, err := DecodeState([]byte(raw)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
