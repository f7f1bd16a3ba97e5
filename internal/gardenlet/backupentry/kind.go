package backupentry

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/gardenlet/backup"
	"gardener.cloud/gardener/internal/shoot/state"
	"gardener.cloud/gardener/internal/stage/usercredential"
)

// foreignBucketPeriod is when a BackupBucket of another seed is read again that is not ready. The gardenlet may not watch it.
const foreignBucketPeriod = 30 * time.Second

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

// SeedName is the seed that the BackupEntry is on, until its gardenlet has released it, and then the one that it is for.
func (*kind) SeedName(entry *corev1beta1.BackupEntry) *string {
	if entry.Spec.SeedName == nil || entry.Status.SeedName == nil {
		return entry.Spec.SeedName
	}
	return entry.Status.SeedName
}

// Operation is what is to be done. A BackupEntry that was released by its former seed waits until its Shoot is restored.
func (*kind) Operation(entry *corev1beta1.BackupEntry) corev1beta1.LastOperationType {
	last, to, on := ptr.Deref(entry.Status.LastOperation, corev1beta1.LastOperation{}), entry.Spec.SeedName, entry.Status.SeedName
	switch {
	case to != nil && on != nil && *to != *on:
		return corev1beta1.LastOperationTypeMigrate
	case entry.Annotations[constants.GardenerOperation] == constants.GardenerOperationRestore,
		last.Type == corev1beta1.LastOperationTypeRestore && last.State != corev1beta1.LastOperationStateSucceeded:
		return corev1beta1.LastOperationTypeRestore
	case last.Type == corev1beta1.LastOperationTypeMigrate:
		return ""
	}
	return corev1beta1.LastOperationTypeReconcile
}

// State returns the state of the BackupEntry in the ShootState of the Shoot that owns it.
func (k *kind) State(ctx context.Context, entry *corev1beta1.BackupEntry) (extensionobject.State, error) {
	owner := slices.IndexFunc(entry.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.Kind == "Shoot" })
	if owner < 0 {
		return extensionobject.State{}, nil
	}
	saved, key := &corev1beta1.ShootState{}, client.ObjectKey{Namespace: entry.Namespace, Name: entry.OwnerReferences[owner].Name}
	if err := k.gardenAPI.Get(ctx, key, saved); client.IgnoreNotFound(err) != nil {
		return extensionobject.State{}, fmt.Errorf("read ShootState %q: %w", key, err)
	}
	if found := state.Extension(&saved.Spec, "BackupEntry", entry.Name); found != nil {
		return extensionobject.State{State: found.State}, nil // there is no namespace for objects that it could refer to
	}
	return extensionobject.State{}, nil
}

// Migrated records that no seed has the BackupEntry.
func (*kind) Migrated(entry *corev1beta1.BackupEntry) { entry.Status.SeedName = nil }

func (*kind) Status(entry *corev1beta1.BackupEntry) backup.Status {
	s := &entry.Status
	return backup.Status{ObservedGeneration: &s.ObservedGeneration, LastOperation: &s.LastOperation, LastError: &s.LastError}
}

func (*kind) CopyName(entry *corev1beta1.BackupEntry) string { return "entry-" + entry.Name }

// Credentials reads the credentials of the BackupBucket.
func (k *kind) Credentials(ctx context.Context, entry *corev1beta1.BackupEntry) (usercredential.Credential, error) {
	bucket, _, err := k.bucket(ctx, entry)
	if err != nil {
		return usercredential.Credential{}, err
	}
	return k.credentialsOf(ctx, entry, bucket)
}

func (k *kind) credentialsOf(ctx context.Context, entry *corev1beta1.BackupEntry, bucket *corev1beta1.BackupBucket) (usercredential.Credential, error) {
	ref := ptr.Deref(bucket.Spec.CredentialsRef, corev1.ObjectReference{})
	if generated := bucket.Status.GeneratedSecretRef; generated != nil { // by the extension
		ref = corev1.ObjectReference{Kind: usercredential.Secret, Namespace: generated.Namespace, Name: generated.Name}
	}
	credentials, err := usercredential.ReadFor(ctx, k.gardenAPI, usercredential.UserOf("BackupEntry", entry), ref)
	if err != nil {
		return credentials, fmt.Errorf("credentials of BackupBucket %q: %w", bucket.Name, err)
	}
	return credentials, nil
}

// Prepare returns the credentials of the BackupBucket, when that is ready.
func (k *kind) Prepare(
	ctx context.Context, entry *corev1beta1.BackupEntry,
) (usercredential.Credential, func(*extensionsv1alpha1.BackupEntry, corev1.SecretReference), error) {
	none := usercredential.Credential{}
	bucket, foreign, err := k.bucket(ctx, entry)
	if err != nil {
		return none, nil, err
	}
	if !bucketReady(bucket) {
		pending := &backup.Pending{Message: fmt.Sprintf("Waiting until BackupBucket %q is ready.", bucket.Name)}
		if foreign {
			pending.After = foreignBucketPeriod
		}
		return none, nil, pending
	}
	credentials, err := k.credentialsOf(ctx, entry, bucket)
	if err != nil {
		return none, nil, err
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

// bucket reads the BackupBucket of a BackupEntry. That of another seed, which the backups of a Shoot are copied from, is foreign: it is in no cache.
func (k *kind) bucket(ctx context.Context, entry *corev1beta1.BackupEntry) (bucket *corev1beta1.BackupBucket, foreign bool, err error) {
	bucket, key := &corev1beta1.BackupBucket{}, client.ObjectKey{Name: entry.Spec.BucketName}
	err = k.gardenCache.Get(ctx, key, bucket)
	if foreign = apierrors.IsNotFound(err); foreign {
		err = k.gardenAPI.Get(ctx, key, bucket)
	}
	if err != nil {
		return nil, foreign, fmt.Errorf("read BackupBucket %q: %w", key.Name, err)
	}
	return bucket, foreign, nil
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
