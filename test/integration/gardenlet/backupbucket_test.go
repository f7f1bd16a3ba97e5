package gardenlet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// testBackupBucket plays the extension that keeps a bucket.
func (g *garden) testBackupBucket(t *testing.T) {
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
			Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "here"}, SeedName: ptr.To(seedName),
			CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"},
		},
	}
	for _, object := range []client.Object{credentials, registration, bucket} {
		if err := g.c.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T: %v", object, err)
		}
	}
	inSeed := &extensionsv1alpha1.BackupBucket{}
	await(t, g, &extensionsv1alpha1.BackupBucketList{}, func(found []*extensionsv1alpha1.BackupBucket) error {
		if len(found) != 1 || found[0].Annotations["gardener.cloud/operation"] != "reconcile" {
			return fmt.Errorf("nothing is ordered: %v", found)
		}
		inSeed = found[0].DeepCopy()
		return nil
	})
	if inSeed.Spec.Type != "local" || inSeed.Spec.Region != "here" {
		t.Errorf("spec is %+v", inSeed.Spec)
	}
	copied := &corev1.Secret{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Namespace: inSeed.Spec.SecretRef.Namespace, Name: inSeed.Spec.SecretRef.Name}, copied); err != nil || string(copied.Data["password"]) != "1" {
		t.Errorf("credentials in the seed: %v", err)
	}

	// The extension works, and gives the bucket credentials of its own.
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "own"}, Data: map[string][]byte{"password": []byte("2")}}
	if err := g.c.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	playExtension(t, g, &extensionsv1alpha1.BackupBucketList{}, func(b *extensionsv1alpha1.BackupBucket) {
		b.Status.ObservedGeneration = b.Generation
		b.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(),
		}
		b.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "own"}
	})
	await(t, g, &corev1beta1.BackupBucketList{}, func(found []*corev1beta1.BackupBucket) error {
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

	// It goes when the extension lets it.
	bucket.Annotations = map[string]string{"confirmation.gardener.cloud/deletion": "true"}
	if err := g.c.Patch(t.Context(), bucket.DeepCopy(), client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := g.c.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	await(t, g, &extensionsv1alpha1.BackupBucketList{}, func(found []*extensionsv1alpha1.BackupBucket) error {
		if len(found) != 1 || found[0].DeletionTimestamp == nil {
			return fmt.Errorf("nothing is deleted: %v", found)
		}
		inSeed = found[0].DeepCopy()
		return nil
	})
	env.Edit(t, g.c, inSeed, func(b *extensionsv1alpha1.BackupBucket) { b.Finalizers = nil })
	await(t, g, &corev1beta1.BackupBucketList{}, func(found []*corev1beta1.BackupBucket) error {
		if len(found) > 0 {
			return fmt.Errorf("BackupBucket %q is still there with %v", found[0].Name, found[0].Finalizers)
		}
		return nil
	})
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(credentials), credentials); err != nil || len(credentials.Finalizers) > 0 {
		t.Errorf("credentials have finalizers %v (%v)", credentials.Finalizers, err)
	}
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(copied), copied); !apierrors.IsNotFound(err) {
		t.Errorf("credentials in the seed: %v", err)
	}
}
