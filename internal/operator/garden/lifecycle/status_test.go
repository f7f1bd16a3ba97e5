package lifecycle

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/garden/values"
	"gardener.cloud/gardener/pkg/flow"
)

// newReporter returns a reporter for a Garden that exists, and the events that it records.
func newReporter(t *testing.T, garden *operatorv1alpha1.Garden) (*statusReporter, client.Client, chan string) {
	t.Helper()
	l := newLandscape(t)
	create(t, l.runtime, garden)
	recorder := events.NewFakeRecorder(10)
	return &statusReporter{
		runtimeCache: l.runtime, recorder: recorder, clock: clocktesting.NewFakePassiveClock(now), garden: garden.DeepCopy(),
		gardener: corev1beta1.Gardener{Name: "operator", Version: "v1"}, operation: corev1beta1.LastOperationTypeReconcile,
	}, l.runtime, recorder.Events
}

func stored(t *testing.T, c client.Client) *operatorv1alpha1.Garden {
	t.Helper()
	garden := &operatorv1alpha1.Garden{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "local"}, garden); err != nil {
		t.Fatal(err)
	}
	return garden
}

func TestStatus(t *testing.T) {
	garden := plainGarden()
	garden.Annotations = map[string]string{"gardener.cloud/operation": "rotate-ca-start"}
	status, c, recorded := newReporter(t, garden)
	operation := func(state corev1beta1.LastOperationState, progress int32, description string) {
		t.Helper()
		want := &corev1beta1.LastOperation{Type: "Reconcile", State: state, Progress: progress, Description: description}
		got := stored(t, c).Status.LastOperation
		if got == nil || got.LastUpdateTime.IsZero() {
			t.Fatalf("last operation %+v has no time", got)
		}
		got.LastUpdateTime = metav1.Time{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("last operation (-want +got):\n%s", diff)
		}
	}
	begun, err := status.begun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"rotate-ca-start"}, begun); diff != "" {
		t.Errorf("operations that begin (-want +got):\n%s", diff)
	}
	operation("Processing", 0, "Reconciliation of the Garden has begun.")
	if s := stored(t, c).Status; s.ObservedGeneration != 3 || s.Gardener == nil || s.Gardener.Version != "v1" {
		t.Errorf("generation %d of gardener %+v, want 3 and version v1", s.ObservedGeneration, s.Gardener)
	}
	// The care controller writes conditions meanwhile.
	current := stored(t, c)
	current.Status.Conditions = []corev1beta1.Condition{{Type: "RuntimeComponentsHealthy", Status: "True"}}
	if err := c.Status().Update(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	status.progress(t.Context(), share{0, 100}, flow.Progress{Total: 4, Done: 1, Running: []string{"Deploying etcd", "Deploying x"}})
	operation("Processing", 25, "Deploying etcd, Deploying x")
	if err := status.failed(t.Context(), errors.New("etcd is not ready")); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, c).Status.LastOperation; got.State != "Error" || got.Progress != 25 || !strings.Contains(got.Description, "etcd is not ready") ||
		!strings.HasSuffix(got.Description, "Operation will be retried.") {
		t.Errorf("last operation %+v", got)
	}
	if event := <-recorded; !strings.HasPrefix(event, "Warning ReconcileError") {
		t.Errorf("event %q", event)
	}
	if _, err := status.begun(t.Context()); err != nil {
		t.Fatal(err)
	}
	operation("Processing", 25, "Reconciliation of the Garden has begun.")
	if err := status.succeeded(t.Context(), values.Source{Garden: garden}); err != nil {
		t.Fatal(err)
	}
	operation("Succeeded", 100, "Garden cluster has been successfully reconciled.")
	end := stored(t, c).Status
	if phase := phasesOf(stored(t, c)).CA; phase != prepared {
		t.Errorf("phase of CAs %q, want Prepared", phase)
	}
	if len(end.AdvertisedAddresses) != 1 || end.AdvertisedAddresses[0].URL != "https://api.garden.example.com" {
		t.Errorf("addresses %+v", end.AdvertisedAddresses)
	}
	if len(end.Conditions) != 1 {
		t.Errorf("conditions %+v: those of the care controller are lost", end.Conditions)
	}
}

// The next leader continues what a process that stops has begun: it is not an error.
func TestNothingIsReportedWhenTheProcessStops(t *testing.T) {
	status, c, _ := newReporter(t, plainGarden())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := status.failed(ctx, errors.New("interrupted")); err != nil {
		t.Fatal(err)
	}
	if last := stored(t, c).Status.LastOperation; last != nil {
		t.Errorf("last operation %+v", last)
	}
}
