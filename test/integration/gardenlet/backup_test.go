package gardenlet

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// testBackups creates a BackupBucket and a BackupEntry in it, reconciles both as their extension controller does, and deletes them.
func (g *garden) testBackups(t *testing.T) {
	credentials := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}, Data: map[string][]byte{"password": []byte("1")},
	}
	registration := &corev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "backup"},
		Spec:       corev1beta1.ControllerRegistrationSpec{Resources: []corev1beta1.ControllerResource{{Kind: "BackupBucket", Type: "local"}, {Kind: "BackupEntry", Type: "local"}}},
	}
	bucket := &corev1beta1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "bucket"},
		Spec: corev1beta1.BackupBucketSpec{
			Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "here"}, SeedName: new(seedName),
			CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"},
		},
	}
	for _, object := range []client.Object{credentials, registration, bucket} {
		if err := g.c.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T: %v", object, err)
		}
	}
	resource := awaitRequest[*extensionsv1alpha1.BackupBucket](t, g)
	if resource.Spec.Type != "local" || resource.Spec.Region != "here" {
		t.Errorf("spec is %+v", resource.Spec)
	}
	copied := g.checkCopy(t, resource.Spec.SecretRef, "1")

	// The extension generates credentials for the bucket, from those that it has.
	generated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "generated"}}
	if err := g.c.Create(t.Context(), generated); err != nil {
		t.Fatal(err)
	}
	playExtension(t, g, &extensionsv1alpha1.BackupBucketList{}, func(b *extensionsv1alpha1.BackupBucket) {
		password := fmt.Sprintf(`{"stringData":{"password":"generated with %s"}}`, g.password(b.Spec.SecretRef))
		if err := g.c.Patch(context.Background(), generated.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(password))); err != nil {
			t.Error(err)
		}
		b.Status.ObservedGeneration = b.Generation
		b.Status.LastOperation = succeeded()
		b.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "generated"}
	})
	env.AwaitList(t, g.c, func(found []*corev1beta1.BackupBucket) error {
		if last := found[0].Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
			return fmt.Errorf("last operation is %+v", last)
		}
		if ref := found[0].Status.GeneratedSecretRef; ref == nil || ref.Name != "generated-bucket-bucket" {
			return fmt.Errorf("generated Secret is %v", ref)
		}
		return nil
	})
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(credentials), credentials); err != nil || len(credentials.Finalizers) == 0 {
		t.Errorf("credentials have no finalizer (%v)", err)
	}

	g.testBackupEntry(t, bucket.Name)

	if err := g.c.Patch(t.Context(), bucket.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := g.c.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	finishDeletion[*extensionsv1alpha1.BackupBucket, *corev1beta1.BackupBucket](t, g)
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(credentials), credentials); err != nil || len(credentials.Finalizers) > 0 {
		t.Errorf("credentials have finalizers %v (%v)", credentials.Finalizers, err)
	}
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(copied), copied); !apierrors.IsNotFound(err) {
		t.Errorf("credentials in the seed: %v", err)
	}
}

// testBackupEntry creates and deletes a BackupEntry in a bucket with generated credentials. The gardenlet is configured to keep backups of
// shoots with purpose production.
func (g *garden) testBackupEntry(t *testing.T, bucket string) {
	entry := &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "shoot--a--b--c", Annotations: map[string]string{"shoot.gardener.cloud/purpose": "production"},
		},
		Spec: corev1beta1.BackupEntrySpec{BucketName: bucket, SeedName: new(seedName)},
	}
	if err := g.c.Create(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	resource := awaitRequest[*extensionsv1alpha1.BackupEntry](t, g)
	if spec := resource.Spec; spec.Type != "local" || spec.Region != "here" || spec.BucketName != bucket {
		t.Errorf("spec is %+v", spec)
	}
	copied := g.checkCopy(t, resource.Spec.SecretRef, "generated with 1")
	playExtension(t, g, &extensionsv1alpha1.BackupEntryList{}, func(e *extensionsv1alpha1.BackupEntry) {
		e.Status.ObservedGeneration, e.Status.LastOperation = e.Generation, succeeded()
		e.Status.ProviderStatus = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"etcd":%q}`, g.password(e.Spec.SecretRef))}
	})
	env.AwaitList(t, g.c, func(found []*corev1beta1.BackupEntry) error {
		if last := found[0].Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
			return fmt.Errorf("last operation is %+v", last)
		}
		return nil
	})

	// The next pass for the BackupBucket finds new credentials, and all extensions get theirs. A change in the seed stands for the end of the period,
	// for which a test cannot wait.
	env.Edit(t, g.c, env.Named[*corev1.Secret]("garden", "backup"), func(s *corev1.Secret) { s.Data["password"] = []byte("2") })
	env.Edit(t, g.c, env.Named[*extensionsv1alpha1.BackupBucket]("", bucket), func(b *extensionsv1alpha1.BackupBucket) {
		b.Labels = map[string]string{"example.com/pass": "another"}
	})
	env.Await(t, g.c, resource, func(e *extensionsv1alpha1.BackupEntry) error {
		if status := e.Status.ProviderStatus; status == nil || string(status.Raw) != `{"etcd":"generated with 2"}` {
			return fmt.Errorf("its extension has written %v", status)
		}
		return nil
	})
	env.Await(t, g.c, entry, func(e *corev1beta1.BackupEntry) error {
		if last := e.Status.LastOperation; last.State != corev1beta1.LastOperationStateSucceeded {
			return fmt.Errorf("last operation is %+v", last)
		}
		return nil
	})

	// The backups are kept for the grace period, until an annotation forces their deletion.
	if err := g.c.Delete(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	env.AwaitList(t, g.c, func(found []*corev1beta1.BackupEntry) error {
		if last := found[0].Status.LastOperation; last.Type != corev1beta1.LastOperationTypeDelete {
			return fmt.Errorf("last operation is %+v", last)
		}
		return nil
	})
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(resource), resource); err != nil || resource.DeletionTimestamp != nil {
		t.Fatalf("the backups were deleted at once (%v)", err)
	}
	if err := g.c.Patch(t.Context(), entry, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"backupentry.core.gardener.cloud/force-deletion":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	finishDeletion[*extensionsv1alpha1.BackupEntry, *corev1beta1.BackupEntry](t, g)
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(copied), copied); !apierrors.IsNotFound(err) {
		t.Errorf("credentials in the seed: %v", err)
	}
}

// succeeded is the last operation of an extension that is ready.
func succeeded() *corev1beta1.LastOperation {
	return &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(),
	}
}

// awaitRequest waits until the gardenlet requests the reconciliation of the only extension resource of a kind.
func awaitRequest[E client.Object](t *testing.T, g *garden) E {
	t.Helper()
	var resource E
	env.AwaitList(t, g.c, func(found []E) error {
		if len(found) != 1 || found[0].GetAnnotations()["gardener.cloud/operation"] != "reconcile" {
			return fmt.Errorf("no reconciliation is requested: %v", found)
		}
		resource = found[0].DeepCopyObject().(E) //nolint:forcetypeassert // a copy has its original's type
		return nil
	})
	return resource
}

// password returns the password in a Secret, for an extension that is played. It is empty if it cannot be read.
func (g *garden) password(ref corev1.SecretReference) string {
	secret := &corev1.Secret{}
	_ = g.c.Get(context.Background(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret)
	return string(secret.Data["password"])
}

// checkCopy compares the password in the copy of the credentials in the seed.
func (g *garden) checkCopy(t *testing.T, ref corev1.SecretReference, password string) *corev1.Secret {
	t.Helper()
	copied := &corev1.Secret{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, copied); err != nil || string(copied.Data["password"]) != password {
		t.Errorf("the password in the seed is %q, want %q: %v", copied.Data["password"], password, err)
	}
	return copied
}

// finishDeletion waits until the gardenlet deletes the extension resource, removes its finalizers as the extension controller does, and waits
// until the object in the garden is deleted.
func finishDeletion[E, T client.Object](t *testing.T, g *garden) {
	t.Helper()
	var resource E
	env.AwaitList(t, g.c, func(found []E) error {
		if len(found) != 1 || found[0].GetDeletionTimestamp() == nil {
			return fmt.Errorf("no extension resource is deleted: %v", found)
		}
		resource = found[0].DeepCopyObject().(E) //nolint:forcetypeassert // a copy has its original's type
		return nil
	})
	env.Edit(t, g.c, resource, func(resource E) { resource.SetFinalizers(nil) })
	env.AwaitList(t, g.c, env.None[T])
}
