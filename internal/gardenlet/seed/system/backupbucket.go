package system

import (
	"context"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/gardenlet/backupbucket"
	"gardener.cloud/gardener/internal/kube"
)

// backupBucketName is the name of the BackupBucket of a Seed: its UID, so that a Seed that is created again gets another BackupBucket.
func backupBucketName(seed *corev1beta1.Seed) string { return string(seed.UID) }

// createBackupBucket creates the BackupBucket of the Seed, or updates what may change of it.
func (s *run) createBackupBucket(ctx context.Context) error {
	want := backupBucket(s.seed)
	current := &corev1beta1.BackupBucket{}
	err := s.gardenCache.Get(ctx, client.ObjectKeyFromObject(want), current)
	if apierrors.IsNotFound(err) {
		if err := s.gardenCache.Create(ctx, want); err != nil {
			return fmt.Errorf("create BackupBucket %q: %w", want.Name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read BackupBucket %q: %w", want.Name, err)
	}
	changed := current.DeepCopy()
	changed.Spec.ProviderConfig, changed.Spec.CredentialsRef = want.Spec.ProviderConfig, want.Spec.CredentialsRef
	if apiequality.Semantic.DeepEqual(current, changed) {
		return nil
	}
	if !apiequality.Semantic.DeepEqual(current.Spec.CredentialsRef, changed.Spec.CredentialsRef) {
		// Afterwards, the gardenlet may not write to the former credentials any more, and nothing else would remove their finalizer.
		if err := backupbucket.ReleaseCredentials(ctx, s.gardenCache, s.GardenAPI, current); err != nil {
			return fmt.Errorf("release former credentials of BackupBucket %q: %w", want.Name, err)
		}
	}
	if err := s.gardenCache.Patch(ctx, changed, client.MergeFrom(current)); err != nil {
		return fmt.Errorf("patch BackupBucket %q: %w", want.Name, err)
	}
	return nil
}

// backupBucket is the BackupBucket of a Seed with backups.
func backupBucket(seed *corev1beta1.Seed) *corev1beta1.BackupBucket {
	backup := seed.Spec.Backup
	return &corev1beta1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: backupBucketName(seed), OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed")),
		}},
		Spec: corev1beta1.BackupBucketSpec{
			Provider:       corev1beta1.BackupBucketProvider{Type: backup.Provider, Region: ptr.Deref(backup.Region, seed.Spec.Provider.Region)},
			ProviderConfig: backup.ProviderConfig.DeepCopy(), CredentialsRef: backup.CredentialsRef.DeepCopy(), SeedName: new(seed.Name),
		},
	}
}

// deleteBackupBucket deletes the BackupBucket of the Seed and waits for its end. It lists the BackupBuckets of the seed, as that is what a
// gardenlet may watch.
func (s *run) deleteBackupBucket(ctx context.Context) error {
	name := backupBucketName(s.seed)
	if err := s.GardenAPI.Delete(ctx, &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("delete BackupBucket %q: %w", name, err)
	}
	return kube.Await(ctx, s.GardenAPI, &corev1beta1.BackupBucketList{}, func(found []*corev1beta1.BackupBucket) error {
		if slices.ContainsFunc(found, func(b *corev1beta1.BackupBucket) bool { return b.Name == name }) {
			return fmt.Errorf("BackupBucket %q still exists", name)
		}
		return nil
	}, nil, client.MatchingFields{"spec.seedName": s.seed.Name})
}
