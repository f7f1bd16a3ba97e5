package backupentry

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/backup"
)

func TestWhoActs(t *testing.T) {
	last := func(typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: typ, State: state}
	}
	for name, tc := range map[string]struct {
		spec, status *string
		last         *corev1beta1.LastOperation
		annotation   string
		seed         string
		operation    corev1beta1.LastOperationType
	}{
		"for no seed":                {operation: "Reconcile"},
		"new":                        {spec: new("a"), seed: "a", operation: "Reconcile"},
		"on its seed":                {spec: new("a"), status: new("a"), seed: "a", operation: "Reconcile"},
		"moves":                      {spec: new("b"), status: new("a"), seed: "a", operation: "Migrate"},
		"released":                   {spec: new("b"), last: last("Migrate", "Succeeded"), seed: "b"},
		"is to be restored":          {spec: new("b"), last: last("Migrate", "Succeeded"), annotation: "restore", seed: "b", operation: "Restore"},
		"is restored":                {spec: new("b"), status: new("b"), last: last("Restore", "Processing"), seed: "b", operation: "Restore"},
		"restored":                   {spec: new("b"), status: new("b"), last: last("Restore", "Succeeded"), seed: "b", operation: "Reconcile"},
		"came back before the end":   {spec: new("a"), status: new("a"), last: last("Migrate", "Processing"), seed: "a"},
		"moves during a restoration": {spec: new("c"), status: new("b"), last: last("Restore", "Error"), annotation: "restore", seed: "b", operation: "Migrate"},
	} {
		t.Run(name, func(t *testing.T) {
			entry := &corev1beta1.BackupEntry{}
			entry.Spec.SeedName, entry.Status.SeedName, entry.Status.LastOperation = tc.spec, tc.status, tc.last
			if tc.annotation != "" {
				entry.Annotations = map[string]string{"gardener.cloud/operation": tc.annotation}
			}
			k := &kind{}
			seed := ""
			if name := k.SeedName(entry); name != nil {
				seed = *name
			}
			if operation := k.Operation(entry); seed != tc.seed || operation != tc.operation {
				t.Errorf("seed %q does %q, want %q and %q", seed, operation, tc.seed, tc.operation)
			}
		})
	}
}

// TestMove plays both gardenlets and the extensions of both seeds.
func TestMove(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	bucket := func(name, seed string) *corev1beta1.BackupBucket {
		b := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.SeedName, b.Spec.CredentialsRef = &seed, &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "creds"}
		b.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
		return b
	}
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden-dev", Name: "e", Finalizers: []string{"gardener"}, OwnerReferences: []metav1.OwnerReference{{Kind: "Shoot", Name: "crazy"}},
	}}
	entry.Spec, entry.Status.SeedName = corev1beta1.BackupEntrySpec{SeedName: new("a"), BucketName: "of-a"}, new("a")
	saved := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "crazy"}}
	saved.Spec.Extensions = []corev1beta1.ExtensionResourceState{{Kind: "BackupEntry", Name: new("e"), State: &runtime.RawExtension{Raw: []byte(`{"x":1}`)}}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(entry).WithObjects(
		entry, saved, bucket("of-a", "a"), bucket("of-b", "b"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "creds"}},
	).Build()
	seeds := map[string]client.WithWatch{}
	for _, name := range []string{"a", "b"} {
		seeds[name] = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&extensionsv1alpha1.BackupEntry{}).Build()
	}
	reconcileOn := func(seed string) {
		t.Helper()
		// The cache of a gardenlet has no buckets of other seeds, which does not matter here.
		r := &backup.Reconciler[*corev1beta1.BackupEntry, *extensionsv1alpha1.BackupEntry]{
			Kind: &kind{gardenCache: garden, gardenAPI: garden}, KindName: "BackupEntry", SeedName: seed,
			GardenCache: garden, GardenAPI: garden, SeedCache: seeds[seed], SeedAPI: seeds[seed], Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
		}
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(entry)}); err != nil {
			t.Fatal(err)
		}
		if err := garden.Get(t.Context(), client.ObjectKeyFromObject(entry), entry); err != nil {
			t.Fatal(err)
		}
	}
	// extension does what an extension does with the requested operation.
	extension := func(seed, want string, typ corev1beta1.LastOperationType) *extensionsv1alpha1.BackupEntry {
		t.Helper()
		inSeed := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "e"}}
		if err := seeds[seed].Get(t.Context(), client.ObjectKeyFromObject(inSeed), inSeed); err != nil {
			t.Fatal(err)
		}
		if got := inSeed.Annotations["gardener.cloud/operation"]; got != want {
			t.Fatalf("seed %q: operation %q is requested, want %q", seed, got, want)
		}
		delete(inSeed.Annotations, "gardener.cloud/operation")
		if err := seeds[seed].Update(t.Context(), inSeed); err != nil {
			t.Fatal(err)
		}
		inSeed.Status.LastOperation = &corev1beta1.LastOperation{Type: typ, State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.Unix(0, 0)}
		inSeed.Status.ObservedGeneration = inSeed.Generation
		if err := seeds[seed].Status().Update(t.Context(), inSeed); err != nil {
			t.Fatal(err)
		}
		return inSeed
	}
	exists := func(seed string) bool {
		return seeds[seed].Get(t.Context(), client.ObjectKey{Name: "e"}, &extensionsv1alpha1.BackupEntry{}) == nil
	}
	change := func(f func()) {
		t.Helper()
		f()
		if err := garden.Update(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
	}
	reconcileOn("a")
	extension("a", "reconcile", corev1beta1.LastOperationTypeCreate)
	reconcileOn("b")
	if exists("b") {
		t.Fatal("the other seed acts before the move")
	}

	change(func() { entry.Spec.SeedName = new("b") })
	reconcileOn("b")
	reconcileOn("a")
	extension("a", "migrate", corev1beta1.LastOperationTypeMigrate)
	if entry.Status.SeedName == nil {
		t.Fatal("it is handed over before the extension has released it")
	}
	reconcileOn("a") // deletes the object
	reconcileOn("a")
	if last := entry.Status.LastOperation; entry.Status.SeedName != nil || last.Type != "Migrate" || last.State != "Succeeded" || exists("a") || exists("b") {
		t.Fatalf("it is not handed over: %+v", last)
	}
	if err := seeds["a"].Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "entry-e"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the credentials are left: %v", err)
	}

	reconcileOn("a") // it is not responsible any more
	reconcileOn("b") // and this one waits for the restoration of the Shoot
	if exists("a") || exists("b") {
		t.Fatal("a seed acts before the restoration")
	}
	change(func() {
		entry.Spec.BucketName, entry.Annotations = "of-b", map[string]string{"gardener.cloud/operation": "restore"}
	})
	reconcileOn("b")
	reconcileOn("b") // the request is not repeated while the extension works
	restored := extension("b", "restore", corev1beta1.LastOperationTypeRestore)
	if state := restored.Status.State; state == nil || string(state.Raw) != `{"x":1}` || restored.Spec.BucketName != "of-b" {
		t.Errorf("it is restored with state %v in bucket %q", state, restored.Spec.BucketName)
	}
	reconcileOn("b")
	if last := entry.Status.LastOperation; *entry.Status.SeedName != "b" || last.Type != "Restore" || last.State != "Succeeded" ||
		entry.Annotations["gardener.cloud/operation"] != "" {
		t.Errorf("the restoration is not done: %+v, %v", last, entry.Annotations)
	}
	reconcileOn("a")
	if exists("a") {
		t.Error("the former seed acts again")
	}
}
