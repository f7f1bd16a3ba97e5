package lifecycle

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/pkg/errorcode"
)

func garden(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1beta1.AddToScheme(scheme), operationsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1beta1.Shoot{}).Build()
}

// An operation may fail for some time, which begins again with a new generation, and with another gardenlet.
func TestFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot)
		err    error
		want   corev1beta1.LastOperationState
		cycle  time.Time
	}{
		"first":        {change: func(*corev1beta1.Shoot) {}, err: errors.New("x"), want: "Error", cycle: noon.Add(-time.Hour)},
		"of the owner": {change: func(*corev1beta1.Shoot) {}, err: errorcode.With(errors.New("x"), corev1beta1.ErrorConfigurationProblem), want: "Failed", cycle: noon.Add(-time.Hour)},
		"for too long": {change: func(s *corev1beta1.Shoot) {
			s.Status.RetryCycleStartTime = new(metav1.NewTime(noon.Add(-13 * time.Hour)))
		}, err: errors.New("x"), want: "Failed", cycle: noon.Add(-13 * time.Hour)},
		"for too long, but it has changed": {change: func(s *corev1beta1.Shoot) {
			s.Status.RetryCycleStartTime = new(metav1.NewTime(noon.Add(-13 * time.Hour)))
			s.Generation++
		}, err: errors.New("x"), want: "Error", cycle: noon},
		"for too long, but the gardenlet is new": {change: func(s *corev1beta1.Shoot) {
			s.Status.RetryCycleStartTime = new(metav1.NewTime(noon.Add(-13 * time.Hour)))
			s.Status.Gardener.Version = "v0"
		}, err: errors.New("x"), want: "Error", cycle: noon},
		"finally, and retried": {change: func(s *corev1beta1.Shoot) {
			s.Status.RetryCycleStartTime = new(metav1.NewTime(noon.Add(-13 * time.Hour)))
			s.Status.LastOperation.State = corev1beta1.LastOperationStateFailed
		}, err: errors.New("x"), want: "Error", cycle: noon},
		"for too long, and it has written the networks of the infrastructure into the spec": {change: func(s *corev1beta1.Shoot) {
			s.Status.RetryCycleStartTime = new(metav1.NewTime(noon.Add(-13 * time.Hour)))
			s.Status.ObservedGeneration++
		}, err: errors.New("x"), want: "Failed", cycle: noon.Add(-13 * time.Hour)},
		"before it was begun": {change: func(s *corev1beta1.Shoot) { s.Status = corev1beta1.ShootStatus{} }, err: errors.New("x"), want: "Error", cycle: noon},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := reconciled().shoot
			shoot.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing
			shoot.Status.RetryCycleStartTime = new(metav1.NewTime(noon.Add(-time.Hour)))
			tc.change(shoot)
			c := garden(t, shoot)
			s := &statusReporter{
				gardenCache: c, clock: clocktesting.NewFakePassiveClock(noon), shoot: shoot, operation: corev1beta1.LastOperationTypeReconcile,
				generation: shoot.Generation, gardener: corev1beta1.Gardener{Version: "v1"}, retry: 12 * time.Hour,
			}
			final, err := s.failed(t.Context(), tc.err)
			if err != nil {
				t.Fatal(err)
			}
			got := &corev1beta1.Shoot{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), got); err != nil {
				t.Fatal(err)
			}
			status := got.Status
			if status.LastOperation.State != tc.want || final != (tc.want == corev1beta1.LastOperationStateFailed) {
				t.Errorf("it is %q, final is %t, want %q", status.LastOperation.State, final, tc.want)
			}
			if !status.RetryCycleStartTime.Time.Equal(tc.cycle) {
				t.Errorf("the time began at %s, want %s", status.RetryCycleStartTime, tc.cycle)
			}
			if status.ObservedGeneration != max(shoot.Generation, shoot.Status.ObservedGeneration) || status.Gardener.Version != "v1" {
				t.Errorf("status is about generation %d, by %q", status.ObservedGeneration, status.Gardener.Version)
			}
		})
	}
}

// Machines that come from another seed are not known to be updated in place before the extension reports it: what changed during the move has not reached them.
func TestRestoredPoolsArePending(t *testing.T) {
	for name, tc := range map[string]struct {
		operation  corev1beta1.LastOperationType
		hibernated bool
		want       []string
	}{
		"a restored shoot":                 {operation: corev1beta1.LastOperationTypeRestore, want: []string{"a"}},
		"a restored one, without machines": {operation: corev1beta1.LastOperationTypeRestore, hibernated: true},
		"a new one":                        {operation: corev1beta1.LastOperationTypeCreate},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := reconciled().shoot
			shoot.Spec.Kubernetes.Version, shoot.Status.Hibernated = "1.36.3", tc.hibernated
			shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a", UpdateStrategy: new(corev1beta1.ManualInPlaceUpdate)}, {Name: "b"}}
			s := &statusReporter{gardenCache: garden(t, shoot), clock: clocktesting.NewFakePassiveClock(noon), shoot: shoot, operation: tc.operation, generation: shoot.Generation}
			if _, err := s.begun(t.Context(), &observed.State{Shoot: shoot}, "here"); err != nil {
				t.Fatal(err)
			}
			if got := s.shoot.Status.ManualUpdatesPending(); !slices.Equal(got, tc.want) {
				t.Errorf("pools that wait are %v, want %v", got, tc.want)
			}
		})
	}
}

// The API server lets the finalizer of a shoot be removed only if its deletion has succeeded, even if nothing was created for it.
func TestRelease(t *testing.T) {
	shoot := reconciled().shoot
	shoot.Finalizers = append(shoot.Finalizers, "example.com/other")
	shoot.DeletionTimestamp = new(metav1.NewTime(noon))
	shoot.Status = corev1beta1.ShootStatus{LastOperation: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateFailed}}
	c := garden(t, shoot, reconciled().seed, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "here"}})
	r := &reconciler{gardenCache: c, Values: Values{
		SeedName: "here", Clock: clocktesting.NewFakePassiveClock(noon), Gardener: corev1beta1.Gardener{Version: "v1"},
		Config: gardenletconfigv1alpha1.ShootControllerConfiguration{RetryDuration: &metav1.Duration{Duration: time.Hour}},
	}}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
		t.Fatal(err)
	}
	last := shoot.Status.LastOperation
	if last.Type != corev1beta1.LastOperationTypeDelete || last.State != corev1beta1.LastOperationStateSucceeded || last.Progress != 100 {
		t.Errorf("last operation is %+v", last)
	}
	if controllerutil.ContainsFinalizer(shoot, constants.FinalizerGardenerName) {
		t.Errorf("finalizers are %v, want none of %q", shoot.Finalizers, constants.FinalizerGardenerName)
	}
}

// The last operation of a shoot that waits for its seed says so.
func TestPostponed(t *testing.T) {
	shoot := reconciled().shoot
	shoot.Status = corev1beta1.ShootStatus{}
	c := garden(t, shoot, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "here"}})
	r := &reconciler{gardenCache: c, Values: Values{
		SeedName: "here", Clock: clocktesting.NewFakePassiveClock(noon), Gardener: corev1beta1.Gardener{Version: "v1"},
		Config: gardenletconfigv1alpha1.ShootControllerConfiguration{RetryDuration: &metav1.Duration{Duration: time.Hour}},
	}}
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
	if err != nil || result.RequeueAfter != seedRetryPeriod {
		t.Fatal(result, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
		t.Fatal(err)
	}
	want := corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStatePending,
		Description: "Creation of the cluster waits: its seed was not reconciled by this version of the gardenlet yet.",
	}
	last := *shoot.Status.LastOperation
	last.LastUpdateTime = metav1.Time{}
	if last != want {
		t.Errorf("last operation is %+v, want %+v", last, want)
	}
	if got := nextOperation(shoot.Status.LastOperation); got != corev1beta1.LastOperationTypeCreate {
		t.Errorf("the next operation is %q", got)
	}
}

// Shoots are queued when their seed becomes ready, and when an operator removes the annotation that stops them all.
func TestResumes(t *testing.T) {
	seed := func(changes ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
		s := reconciled().seed
		for _, change := range changes {
			change(s)
		}
		return s
	}
	stop := func(s *corev1beta1.Seed) {
		s.Annotations = map[string]string{constants.EmergencyStopShootReconciliations: "true"}
	}
	old := func(s *corev1beta1.Seed) { s.Status.Gardener.Version = "v0" }
	for name, tc := range map[string]struct {
		before, after *corev1beta1.Seed
		want          bool
	}{
		"nothing changes":                   {seed(), seed(), false},
		"it becomes ready":                  {seed(old), seed(), true},
		"it becomes unready":                {seed(), seed(old), false},
		"they may be reconciled":            {seed(stop), seed(), true},
		"they may be reconciled, but later": {seed(stop, old), seed(old), false},
	} {
		if got := resumes(tc.before, tc.after, "v1"); got != tc.want {
			t.Errorf("%s: resumes() is %t", name, got)
		}
	}
}
