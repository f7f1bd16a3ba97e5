package lifecycle

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/flow"
)

func TestForced(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		deleted    bool
		want       bool
	}{
		"no":                {deleted: true},
		"declined":          {annotation: "false", deleted: true},
		"an invalid value":  {annotation: "please", deleted: true},
		"yes":               {annotation: "true", deleted: true, want: true},
		"it is not deleted": {annotation: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Annotations = map[string]string{"confirmation.gardener.cloud/force-deletion": tc.annotation}
			if tc.deleted {
				shoot.DeletionTimestamp = new(metav1.NewTime(noon))
			}
			if got := forced(shoot); got != tc.want {
				t.Errorf("forced() is %t", got)
			}
		})
	}
}

// A deletion that waits for something ends when it becomes one by force, and the shoot is queued again.
func TestForceInterruptsDeletion(t *testing.T) {
	r := &reconciler{Values: Values{Clock: clock.RealClock{}}}
	shoot := &corev1beta1.Shoot{}
	shoot.Namespace, shoot.Name, shoot.DeletionTimestamp, shoot.Finalizers = "garden-dev", "crazy-botany", new(metav1.NewTime(noon)), []string{"gardener"}
	before := shoot.DeepCopy()
	shoot.Annotations = map[string]string{"confirmation.gardener.cloud/force-deletion": "true"}
	f, err := flow.New("x", flow.Do("waits", "Waiting", func(ctx context.Context) error {
		if !r.changed().Update(event.TypedUpdateEvent[*corev1beta1.Shoot]{ObjectOld: before, ObjectNew: shoot}) {
			t.Error("the change does not queue the shoot")
		}
		<-ctx.Done()
		return ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	status := &statusReporter{gardenCache: garden(t, before), clock: r.Clock, shoot: before, operation: corev1beta1.LastOperationTypeDelete}
	if err := r.run(t.Context(), status, f); !errors.Is(err, errForced) {
		t.Errorf("run() ends with %v", err)
	}
	if _, ok := r.running.Load(client.ObjectKeyFromObject(shoot)); ok {
		t.Error("the flow that has ended is still in the map")
	}
}
