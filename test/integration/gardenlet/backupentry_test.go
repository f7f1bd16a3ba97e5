package gardenlet

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// testBackupEntry plays the extension that keeps an entry in a bucket. The gardenlet is configured to keep backups of production.
func (g *garden) testBackupEntry(t *testing.T, bucket string) {
	entry := &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "shoot--a--b--c", Annotations: map[string]string{"shoot.gardener.cloud/purpose": "production"},
		},
		Spec: corev1beta1.BackupEntrySpec{BucketName: bucket, SeedName: ptr.To(seedName)},
	}
	if err := g.c.Create(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	inSeed := &extensionsv1alpha1.BackupEntry{}
	await(t, g, &extensionsv1alpha1.BackupEntryList{}, func(found []*extensionsv1alpha1.BackupEntry) error {
		if len(found) != 1 || found[0].Annotations["gardener.cloud/operation"] != "reconcile" {
			return fmt.Errorf("nothing is ordered: %v", found)
		}
		inSeed = found[0].DeepCopy()
		return nil
	})
	if spec := inSeed.Spec; spec.Type != "local" || spec.Region != "here" || spec.BucketName != bucket {
		t.Errorf("spec is %+v", spec)
	}
	copied, key := &corev1.Secret{}, client.ObjectKey{Namespace: inSeed.Spec.SecretRef.Namespace, Name: inSeed.Spec.SecretRef.Name}
	if err := g.c.Get(t.Context(), key, copied); err != nil || string(copied.Data["password"]) != "2" {
		t.Errorf("the credentials in the seed are not those that the extension made for the bucket (%v)", err)
	}

	playExtension(t, g, &extensionsv1alpha1.BackupEntryList{}, func(e *extensionsv1alpha1.BackupEntry) {
		e.Status.ObservedGeneration = e.Generation
		e.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(),
		}
	})
	await(t, g, &corev1beta1.BackupEntryList{}, func(found []*corev1beta1.BackupEntry) error {
		if last := found[0].Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
			return fmt.Errorf("last operation is %+v", last)
		}
		return nil
	})

	// The backups outlive the shoot, until somebody does not want to wait.
	if err := g.c.Delete(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	await(t, g, &corev1beta1.BackupEntryList{}, func(found []*corev1beta1.BackupEntry) error {
		if last := found[0].Status.LastOperation; last.Type != corev1beta1.LastOperationTypeDelete {
			return fmt.Errorf("last operation is %+v", last)
		}
		return nil
	})
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(inSeed), inSeed); err != nil || inSeed.DeletionTimestamp != nil {
		t.Fatalf("the backups were deleted at once (%v)", err)
	}
	if err := g.c.Patch(t.Context(), entry, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"backupentry.core.gardener.cloud/force-deletion":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	await(t, g, &extensionsv1alpha1.BackupEntryList{}, func(found []*extensionsv1alpha1.BackupEntry) error {
		if len(found) != 1 || found[0].DeletionTimestamp == nil {
			return fmt.Errorf("nothing is deleted: %v", found)
		}
		inSeed = found[0].DeepCopy()
		return nil
	})
	env.Edit(t, g.c, inSeed, func(e *extensionsv1alpha1.BackupEntry) { e.Finalizers = nil })
	await(t, g, &corev1beta1.BackupEntryList{}, func(found []*corev1beta1.BackupEntry) error {
		if len(found) > 0 {
			return errors.New("the BackupEntry is still there")
		}
		return nil
	})
	if err := g.c.Get(t.Context(), key, copied); !apierrors.IsNotFound(err) {
		t.Errorf("credentials in the seed: %v", err)
	}
}
