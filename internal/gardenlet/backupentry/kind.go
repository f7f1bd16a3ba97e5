package backupentry

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/backup"
	"gardener.cloud/gardener/internal/stage/usercredential"
)

// kind is what is particular to BackupEntries.
type kind struct {
	gardenCache client.Client
	// gardenAPI reads credentials, which are in no cache.
	gardenAPI client.Reader
	clock     clock.PassiveClock
	// gracePeriod is how long backups outlive their shoot, and purposes are those of the shoots for which it holds. Without any, it holds
	// for all shoots.
	gracePeriod time.Duration
	purposes    []corev1beta1.ShootPurpose
}

func (*kind) SeedName(entry *corev1beta1.BackupEntry) *string { return entry.Spec.SeedName }

func (*kind) Status(entry *corev1beta1.BackupEntry) backup.Status {
	s := &entry.Status
	return backup.Status{ObservedGeneration: &s.ObservedGeneration, LastOperation: &s.LastOperation, LastError: &s.LastError}
}

func (*kind) CopyName(entry *corev1beta1.BackupEntry) string { return "entry-" + entry.Name }

// Prepare returns the credentials of the BackupBucket, when that is ready.
func (k *kind) Prepare(
	ctx context.Context, entry *corev1beta1.BackupEntry,
) (usercredential.Credential, func(*extensionsv1alpha1.BackupEntry, corev1.SecretReference), error) {
	none, bucket := usercredential.Credential{}, &corev1beta1.BackupBucket{}
	if err := k.gardenCache.Get(ctx, client.ObjectKey{Name: entry.Spec.BucketName}, bucket); err != nil {
		return none, nil, fmt.Errorf("read BackupBucket %q: %w", entry.Spec.BucketName, err)
	}
	if !bucketReady(bucket) {
		return none, nil, &backup.Pending{Message: fmt.Sprintf("Waiting until BackupBucket %q is ready.", bucket.Name)}
	}
	ref := ptr.Deref(bucket.Spec.CredentialsRef, corev1.ObjectReference{})
	if generated := bucket.Status.GeneratedSecretRef; generated != nil { // by the extension
		ref = corev1.ObjectReference{Kind: usercredential.Secret, Namespace: generated.Namespace, Name: generated.Name}
	}
	credentials, err := usercredential.ReadFor(ctx, k.gardenAPI, usercredential.UserOf("BackupEntry", entry), ref)
	if err != nil {
		return none, nil, fmt.Errorf("credentials of BackupBucket %q: %w", bucket.Name, err)
	}
	return credentials, func(resource *extensionsv1alpha1.BackupEntry, ref corev1.SecretReference) {
		resource.Spec = extensionsv1alpha1.BackupEntrySpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{
				Type: bucket.Spec.Provider.Type, Class: resource.Spec.Class, ProviderConfig: bucket.Spec.ProviderConfig,
			},
			BackupBucketProviderStatus: bucket.Status.ProviderStatus, Region: bucket.Spec.Provider.Region, BucketName: bucket.Name, SecretRef: ref,
		}
	}, nil
}

// bucketReady is whether the last operation on a BackupBucket has succeeded.
func bucketReady(bucket *corev1beta1.BackupBucket) bool {
	last := bucket.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateSucceeded
}

// Applied records the seed.
func (*kind) Applied(_ context.Context, entry *corev1beta1.BackupEntry, _ *extensionsv1alpha1.BackupEntry, _ bool) error {
	entry.Status.SeedName = entry.Spec.SeedName
	return nil
}

// BeforeDeletion waits for the end of the grace period.
func (k *kind) BeforeDeletion(_ context.Context, entry *corev1beta1.BackupEntry) error {
	purpose := corev1beta1.ShootPurpose(entry.Annotations[constants.ShootPurposeAnnotation])
	if entry.Annotations[constants.BackupEntryForceDeletion] == "true" || len(k.purposes) > 0 && !slices.Contains(k.purposes, purpose) {
		return nil
	}
	if remaining := entry.DeletionTimestamp.Add(k.gracePeriod).Sub(k.clock.Now()); remaining > 0 {
		return &backup.Pending{After: remaining, Message: "The backups are kept until the grace period is over; the annotation " +
			constants.BackupEntryForceDeletion + "=true deletes them at once."}
	}
	return nil
}

// AfterDeletion does nothing: BackupEntries have no finalizers on other objects.
func (*kind) AfterDeletion(context.Context, *corev1beta1.BackupEntry) error { return nil }
