package managedseedset

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/test/behind"
	"gardener.cloud/gardener/test/builder"
)

func TestReconcileWithStaleCache(t *testing.T) {
	set := setOf(0)
	api := garden(t, set)
	behind.Case[*seedmanagementv1alpha1.ManagedSeedSet]{
		API: api, Object: set,
		Status: func(s *seedmanagementv1alpha1.ManagedSeedSet) any { return s.Status.Replicas },
		Other:  func(s *seedmanagementv1alpha1.ManagedSeedSet) { s.Status.Replicas = 1 },
		Pass: func(cache client.WithWatch) {
			pass(t, set, cache, api, events.NewFakeRecorder(1))
		},
	}.Run(t)
}

// A set does not take Shoots over that have the name of its next replica, and does not wait for them either.
func TestNamesThatAreTaken(t *testing.T) {
	set := setOf(1)
	taken := func(number int) *corev1beta1.Shoot {
		return builder.Shoot(replicaName("s", number), builder.In("garden"), func(s *corev1beta1.Shoot) { s.Labels = set.Spec.ShootTemplate.Labels })
	}
	api, recorder := garden(t, set, taken(0), taken(1)), events.NewFakeRecorder(9)
	if wait := pass(t, set, api, api, recorder); wait != time.Hour {
		t.Errorf("the next pass is after %s", wait)
	}
	shoot := &corev1beta1.Shoot{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "s-2"}, shoot); err != nil || !metav1.IsControlledBy(shoot, set) {
		t.Errorf("the replica is not created: %v", err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	if pending := set.Status.PendingReplica; set.Status.NextReplicaNumber != 3 || set.Status.Replicas != 1 || pending == nil || pending.Name != "s-2" {
		t.Errorf("the status is %+v", set.Status)
	}
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	if want := []string{
		"Warning ShootExists Shoot s-0 exists already and is not of the set: the replica gets another number",
		"Warning ShootExists Shoot s-1 exists already and is not of the set: the replica gets another number",
		"Normal CreatingShoot Replica s-2",
	}; !slices.Equal(got, want) {
		t.Errorf("events are %q", got)
	}
}

// A Shoot that the set has just created, and that a list does not have yet, is waited for.
func TestOwnShootIsWaitedFor(t *testing.T) {
	set := setOf(1)
	api := garden(t, set, shootOf(set, "s-0"))
	behind := interceptor.NewClient(api, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil }})
	recorder := events.NewFakeRecorder(9)
	if wait := pass(t, set, behind, behind, recorder); wait != time.Hour || len(recorder.Events) > 0 {
		t.Errorf("the next pass is after %s, with %d events", wait, len(recorder.Events))
	}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "s-1"}, &corev1beta1.Shoot{}); !apierrors.IsNotFound(err) {
		t.Errorf("another Shoot is created: %v", err)
	}
}

func setOf(replicas int32) *seedmanagementv1alpha1.ManagedSeedSet {
	labels := map[string]string{"set": "s"}
	set := &seedmanagementv1alpha1.ManagedSeedSet{Spec: seedmanagementv1alpha1.ManagedSeedSetSpec{Replicas: &replicas, Selector: metav1.LabelSelector{MatchLabels: labels}}}
	set.Spec.ShootTemplate.Labels = labels
	set.Namespace, set.Name, set.UID, set.Finalizers = "garden", "s", "uid", []string{constants.FinalizerGardenerName}
	return set
}

func garden(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1beta1.AddToScheme(scheme), seedmanagementv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects[0]).Build()
}

// pass reconciles a set, and returns when it is requeued.
func pass(t *testing.T, set *seedmanagementv1alpha1.ManagedSeedSet, cache client.Client, api client.Reader, recorder events.EventRecorder) time.Duration {
	t.Helper()
	r := &reconciler{
		Values:      Values{SyncPeriod: time.Hour, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))},
		gardenCache: cache, gardenAPI: api, recorder: recorder,
	}
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}
