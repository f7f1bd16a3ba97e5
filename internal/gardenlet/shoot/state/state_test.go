package state

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestSaveable(t *testing.T) {
	for name, tc := range map[string]struct {
		last *corev1beta1.LastOperation
		want bool
	}{
		"no operation":            {},
		"being created":           {last: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateProcessing}},
		"created":                 {last: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateSucceeded}, want: true},
		"a reconciliation failed": {last: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateFailed}, want: true},
		"being migrated":          {last: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateSucceeded}},
		"being restored":          {last: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeRestore, State: corev1beta1.LastOperationStateError}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{TechnicalID: "shoot--dev--a", LastOperation: tc.last}}
			if got := saveable(shoot); got != tc.want {
				t.Errorf("saveable() is %t", got)
			}
		})
	}
}

func TestNextSave(t *testing.T) {
	const period = 6 * time.Hour
	at := func(saved string) time.Time {
		return nextSave(&corev1beta1.Shoot{}, &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/timestamp": saved}}}, period, now)
	}
	for _, text := range []string{"", "yesterday", now.Add(time.Hour).Format(time.RFC3339Nano)} {
		if got := at(text); !got.Equal(now) {
			t.Errorf("a state with timestamp %q is saved again at %s, want now", text, got)
		}
	}
	last := now.Add(-time.Hour)
	for state, want := range map[corev1beta1.LastOperationState]bool{
		corev1beta1.LastOperationStateSucceeded: true, corev1beta1.LastOperationStateError: true, corev1beta1.LastOperationStateProcessing: false,
	} {
		shoot := &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{LastOperation: &corev1beta1.LastOperation{State: state, LastUpdateTime: metav1.NewTime(last)}}}
		saved := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/timestamp": last.Add(-time.Minute).Format(time.RFC3339Nano)}}}
		if got := nextSave(shoot, saved, period, now); got.Equal(now) != want {
			t.Errorf("after an operation that is %s the state is saved at %s", state, got)
		}
	}
	if got := at(last.Format(time.RFC3339Nano)).Sub(last); got > period || got < period*9/10 {
		t.Errorf("a state is saved again after %s", got)
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// newReconciler has a shoot with state in the seed "s".
func newReconciler(t *testing.T) (*reconciler, reconcile.Request) {
	t.Helper()
	const namespace = "shoot--dev--a"
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "a", UID: "1", Finalizers: []string{"gardener"}},
		Status: corev1beta1.ShootStatus{TechnicalID: namespace, SeedName: new("s"), LastOperation: &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded,
		}},
	}
	secret := func(name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
			Type:       corev1.SecretTypeOpaque, Immutable: new(true), Data: map[string][]byte{"k": []byte("v")},
		}
	}
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	worker.Status.State = &runtime.RawExtension{Raw: []byte(`{"x":1}`)}
	reference := corev1beta1.NamedResourceReference{Name: "r"}
	reference.ResourceRef.APIVersion, reference.ResourceRef.Kind, reference.ResourceRef.Name = "v1", "Secret", "of-worker"
	worker.Status.Resources = []corev1beta1.NamedResourceReference{reference, reference}
	scheme := newScheme(t)
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot).WithStatusSubresource(shoot).Build()
	seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		secret("ca-1", map[string]string{"managed-by": "secrets-manager", "persist": "true", "name": "ca"}),
		secret("kube-apiserver-1", map[string]string{"managed-by": "secrets-manager", "name": "kube-apiserver"}),
		secret("of-worker", nil), worker,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Annotations: map[string]string{"shoot.gardener.cloud/uid": "1"}}},
		&extensionsv1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}},
	).Build()
	return &reconciler{gardenCache: garden, Values: Values{
		SeedName: "s", GardenAPI: garden, SeedAPI: seed, Clock: clocktesting.NewFakePassiveClock(now),
		Config: gardenletconfigv1alpha1.ShootStateControllerConfiguration{SyncPeriod: &metav1.Duration{Duration: 6 * time.Hour}},
	}}, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)}
}

func TestStateIsSaved(t *testing.T) {
	r, request := newReconciler(t)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	state := &corev1beta1.ShootState{}
	if err := r.gardenCache.Get(t.Context(), request.NamespacedName, state); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]corev1beta1.GardenerResourceData{{
		Name: "ca-1", Type: "secret", Labels: map[string]string{"managed-by": "secrets-manager", "persist": "true", "name": "ca"},
		Data: runtime.RawExtension{Raw: []byte(`{"data":{"k":"dg=="},"immutable":true,"type":"Opaque"}`)},
	}}, state.Spec.Gardener); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if len(state.Spec.Extensions) != 1 || state.Spec.Extensions[0].Kind != "Worker" || string(state.Spec.Extensions[0].State.Raw) != `{"x":1}` {
		t.Errorf("states of extensions: %v", state.Spec.Extensions)
	}
	if len(state.Spec.Resources) != 1 {
		t.Fatalf("resources: %v", state.Spec.Resources)
	}
	saved := &corev1.Secret{}
	if err := json.Unmarshal(state.Spec.Resources[0].Data.Raw, saved); err != nil {
		t.Fatal(err)
	}
	if string(saved.Data["k"]) != "v" || saved.ResourceVersion != "" {
		t.Errorf("the Secret that an extension refers to is saved as %v", saved)
	}
	if got := state.Annotations["gardener.cloud/timestamp"]; got != "2026-03-04T12:00:00Z" {
		t.Errorf("the timestamp is %q", got)
	}

	result, err := r.Reconcile(t.Context(), request) // not due yet
	if err != nil || result.RequeueAfter < 5*time.Hour {
		t.Errorf("the next state is saved after %s: %v", result.RequeueAfter, err)
	}
	again := &corev1beta1.ShootState{}
	if err := r.gardenCache.Get(t.Context(), request.NamespacedName, again); err != nil || again.ResourceVersion != state.ResourceVersion {
		t.Errorf("a state was saved before it was due: %v", err)
	}
}

// A shoot whose operation fails every few minutes has its state written when that has changed, or is as old as that of any other shoot.
func TestStateOfAFailingShoot(t *testing.T) {
	r, request := newReconciler(t)
	clock := clocktesting.NewFakePassiveClock(now)
	r.Clock = clock
	saved := func() string {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		state := &corev1beta1.ShootState{}
		if err := r.gardenCache.Get(t.Context(), request.NamespacedName, state); err != nil {
			t.Fatal(err)
		}
		return state.Annotations["gardener.cloud/timestamp"]
	}
	ends := func(after time.Duration, state corev1beta1.LastOperationState) {
		t.Helper()
		clock.SetTime(now.Add(after))
		shoot := &corev1beta1.Shoot{}
		if err := r.gardenCache.Get(t.Context(), request.NamespacedName, shoot); err != nil {
			t.Fatal(err)
		}
		shoot.Status.LastOperation.State, shoot.Status.LastOperation.LastUpdateTime = state, metav1.NewTime(clock.Now())
		if err := r.gardenCache.Status().Update(t.Context(), shoot); err != nil {
			t.Fatal(err)
		}
	}
	at := func(after time.Duration) string { return now.Add(after).Format(time.RFC3339Nano) }

	saved()
	ends(time.Hour, corev1beta1.LastOperationStateError)
	if got := saved(); got != at(0) {
		t.Errorf("what a failed operation has not changed is saved at %s", got)
	}
	ends(2*time.Hour, corev1beta1.LastOperationStateError)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--a", Name: "ca-2", Labels: map[string]string{"persist": "true"}}}
	if err := r.SeedAPI.(client.Client).Create(t.Context(), secret); err != nil { //nolint:forcetypeassert // the fake is one
		t.Fatal(err)
	}
	if got := saved(); got != at(2*time.Hour) {
		t.Errorf("a new Secret is saved at %s", got)
	}
	ends(9*time.Hour, corev1beta1.LastOperationStateError)
	if got := saved(); got != at(9*time.Hour) {
		t.Errorf("after the period, the state is of %s", got)
	}
	ends(10*time.Hour, corev1beta1.LastOperationStateSucceeded)
	if got := saved(); got != at(10*time.Hour) {
		t.Errorf("after an operation that has succeeded, the state is of %s", got)
	}
}

func TestStateIsDeletedWithTheShoot(t *testing.T) {
	r, request := newReconciler(t)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := r.gardenCache.Delete(t.Context(), &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := r.gardenCache.Get(t.Context(), request.NamespacedName, &corev1beta1.ShootState{}); !apierrors.IsNotFound(err) {
		t.Errorf("the state still exists: %v", err)
	}
}

func TestManagedSeedsSaveNoStates(t *testing.T) {
	r, request := newReconciler(t)
	if err := r.gardenCache.Create(t.Context(), &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := r.gardenCache.Get(t.Context(), request.NamespacedName, &corev1beta1.ShootState{}); !apierrors.IsNotFound(err) {
		t.Errorf("a state was saved: %v", err)
	}
}

// Without a ManagedSeed, a gardenlet that may only read its own is not allowed to read it.
func TestStatesAreSavedIfReadingAManagedSeedIsForbidden(t *testing.T) {
	r, request := newReconciler(t)
	r.GardenAPI = interceptor.NewClient(r.gardenCache.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake is one
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*seedmanagementv1alpha1.ManagedSeed); ok {
				return apierrors.NewForbidden(seedmanagementv1alpha1.Resource("managedseeds"), key.Name, errors.New("no relationship"))
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := r.gardenCache.Get(t.Context(), request.NamespacedName, &corev1beta1.ShootState{}); err != nil {
		t.Errorf("no state was saved: %v", err)
	}
}

// The name of the namespace is in a status that another gardenlet may have written.
func TestNoStateOfAnotherShootIsSaved(t *testing.T) {
	r, request := newReconciler(t)
	shoot := &corev1beta1.Shoot{}
	if err := r.GardenAPI.Get(t.Context(), request.NamespacedName, shoot); err != nil {
		t.Fatal(err)
	}
	shoot.UID = "2"
	if err := r.save(t.Context(), shoot, &corev1beta1.ShootState{}); err == nil {
		t.Error("the state of another shoot is saved")
	}
}
