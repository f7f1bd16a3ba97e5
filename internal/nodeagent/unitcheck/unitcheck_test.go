package unitcheck

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/operatingsystemconfig"
	"gardener.cloud/gardener/internal/nodeagent/systemd"
)

// empty is a machine without units.
type empty struct{}

func (empty) State(context.Context, string) (systemd.State, error) {
	return systemd.State{Load: "not-found", Active: "inactive"}, nil
}

func TestUnitThatAnExtensionStopsIsNotReported(t *testing.T) {
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	osc.Spec.Units = []extensionsv1alpha1.Unit{{Name: "a.service"}, {Name: "b.service"}}
	osc.Status.ExtensionUnits = []extensionsv1alpha1.Unit{{Name: "a.service", Command: new(extensionsv1alpha1.CommandStop)}}
	r := &reconciler{Values{Clock: clock.RealClock{}, Systemd: empty{}}}
	problems, err := r.problems(t.Context(), operatingsystemconfig.Units(osc))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"unit b.service does not exist"}, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestProblem(t *testing.T) {
	now := time.Unix(10000, 0)
	for name, tc := range map[string]struct {
		state systemd.State
		want  string
	}{
		"runs":                {state: systemd.State{Load: "loaded", Active: "active"}},
		"has completed":       {state: systemd.State{Load: "loaded", Active: "inactive"}},
		"is masked":           {state: systemd.State{Load: "masked", Active: "inactive"}},
		"does not exist":      {state: systemd.State{Load: "not-found", Active: "inactive"}, want: "does not exist"},
		"failed":              {state: systemd.State{Load: "loaded", Active: "failed"}, want: "failed"},
		"starts":              {state: systemd.State{Load: "loaded", Active: "activating", Since: now.Add(-time.Minute)}},
		"starts for too long": {state: systemd.State{Load: "loaded", Active: "activating", Since: now.Add(-time.Hour)}, want: "is stuck in activating"},
		"stops for too long":  {state: systemd.State{Load: "loaded", Active: "deactivating", Since: now.Add(-time.Hour)}, want: "is stuck in deactivating"},
		"has run for an hour": {state: systemd.State{Load: "loaded", Active: "active", Since: now.Add(-time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := problem(tc.state, now, 5*time.Minute); got != tc.want {
				t.Errorf("problem() = %q, want %q", got, tc.want)
			}
		})
	}
}
