package lifecycle

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Tasks that somebody asks for during a run are for the next one.
func TestTasksDone(t *testing.T) {
	for name, test := range map[string]struct{ before, now, want string }{
		"none":                      {},
		"all are done":              {before: "deployInfrastructure", now: "deployInfrastructure"},
		"one was asked for in time": {before: "a", now: "a,b", want: "a,b"},
		"the first":                 {now: "a", want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			shoot := &corev1beta1.Shoot{}
			shoot.Namespace, shoot.Name = "garden-dev", "crazy-botany"
			if test.now != "" {
				shoot.Annotations = map[string]string{constants.ShootTasks: test.now}
			}
			if err := s.garden.Create(t.Context(), shoot); err != nil {
				t.Fatal(err)
			}
			if err := s.tasksDone(t.Context(), shoot, test.before); err != nil {
				t.Fatal(err)
			}
			if err := s.garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
				t.Fatal(err)
			}
			if got := shoot.Annotations[constants.ShootTasks]; got != test.want {
				t.Errorf("tasks: got %q, want %q", got, test.want)
			}
		})
	}
}
