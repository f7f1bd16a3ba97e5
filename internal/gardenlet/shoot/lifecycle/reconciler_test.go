package lifecycle

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Tasks that somebody asks for during a run are for the next one, and those that nobody here knows are for others.
func TestDropTasks(t *testing.T) {
	for name, test := range map[string]struct{ before, now, want string }{
		"none":                      {},
		"all are done":              {before: "deployInfrastructure", now: "deployInfrastructure"},
		"one was asked for in time": {before: "deployInfrastructure", now: "deployInfrastructure,restartCoreAddons", want: "restartCoreAddons"},
		"the first":                 {now: "deployInfrastructure", want: "deployInfrastructure"},
		"one is for others":         {before: "deployInfrastructure,custom", now: "deployInfrastructure,custom", want: "custom"},
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
			before := &corev1beta1.Shoot{}
			before.Annotations = map[string]string{constants.ShootTasks: test.before}
			if err := s.dropTasks(t.Context(), shoot, tasksOf(before)); err != nil {
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
