package backupbucket

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/backup"
	"gardener.cloud/gardener/internal/kube"
)

var errUnsupportedCredentials = errors.New("spec.credentialsRef: only Secrets are supported")

// kind is what is particular to BackupBuckets.
type kind struct {
	gardenCache, seedCache client.Client
}

func (*kind) SeedName(bucket *corev1beta1.BackupBucket) *string { return bucket.Spec.SeedName }

func (*kind) Status(bucket *corev1beta1.BackupBucket) backup.Status {
	s := &bucket.Status
	return backup.Status{ObservedGeneration: &s.ObservedGeneration, LastOperation: &s.LastOperation, LastError: &s.LastError}
}

func (*kind) CopyName(bucket *corev1beta1.BackupBucket) string { return "bucket-" + bucket.Name }

// Prepare returns the Secret that the BackupBucket refers to, with a finalizer.
func (k *kind) Prepare(
	ctx context.Context, bucket *corev1beta1.BackupBucket,
) (*corev1.Secret, func(*extensionsv1alpha1.BackupBucket, corev1.SecretReference), error) {
	credentials, err := k.credentials(ctx, bucket)
	if err != nil {
		return nil, nil, err
	}
	if err := kube.AddFinalizer(ctx, k.gardenCache, credentials, constants.FinalizerGardener); err != nil {
		return nil, nil, err
	}
	return credentials, func(resource *extensionsv1alpha1.BackupBucket, ref corev1.SecretReference) {
		resource.Spec = extensionsv1alpha1.BackupBucketSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{
				Type: bucket.Spec.Provider.Type, Class: resource.Spec.Class, ProviderConfig: bucket.Spec.ProviderConfig,
			},
			Region: bucket.Spec.Provider.Region, SecretRef: ref,
		}
	}, nil
}

// Applied copies the provider status and the generated credentials to the garden.
func (k *kind) Applied(ctx context.Context, bucket *corev1beta1.BackupBucket, resource *extensionsv1alpha1.BackupBucket, ready bool) error {
	if !ready {
		return nil
	}
	bucket.Status.ProviderStatus = resource.Status.ProviderStatus
	ref := resource.Status.GeneratedSecretRef
	if ref == nil {
		bucket.Status.GeneratedSecretRef = nil
		return nil
	}
	generated := &corev1.Secret{}
	if err := k.seedCache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, generated); err != nil {
		return fmt.Errorf("read generated Secret: %w", err)
	}
	inGarden := generatedSecret(bucket)
	if _, err := controllerutil.CreateOrPatch(ctx, k.gardenCache, inGarden, func() error {
		inGarden.Data = generated.Data
		inGarden.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(bucket, corev1beta1.SchemeGroupVersion.WithKind("BackupBucket"))}
		return nil
	}); err != nil {
		return fmt.Errorf("copy generated Secret to the garden: %w", err)
	}
	bucket.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: inGarden.Namespace, Name: inGarden.Name}
	return nil
}

// BeforeDeletion deletes the generated credentials in the garden.
func (k *kind) BeforeDeletion(ctx context.Context, bucket *corev1beta1.BackupBucket) error {
	if err := k.gardenCache.Delete(ctx, generatedSecret(bucket)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete generated Secret: %w", err)
	}
	return nil
}

// AfterDeletion removes the finalizer of the credentials, unless another BackupBucket of the seed uses them.
func (k *kind) AfterDeletion(ctx context.Context, bucket *corev1beta1.BackupBucket) error {
	credentials, err := k.credentials(ctx, bucket)
	if apierrors.IsNotFound(err) || errors.Is(err, errUnsupportedCredentials) {
		return nil
	}
	if err != nil {
		return err
	}
	all := &corev1beta1.BackupBucketList{}
	if err := k.gardenCache.List(ctx, all); err != nil {
		return fmt.Errorf("list BackupBuckets: %w", err)
	}
	for _, other := range all.Items {
		if other.Name != bucket.Name && apiequality.Semantic.DeepEqual(other.Spec.CredentialsRef, bucket.Spec.CredentialsRef) {
			return nil
		}
	}
	return kube.RemoveFinalizer(ctx, k.gardenCache, credentials, constants.FinalizerGardener)
}

// credentials reads the Secret with the credentials for the infrastructure.
func (k *kind) credentials(ctx context.Context, bucket *corev1beta1.BackupBucket) (*corev1.Secret, error) {
	ref := bucket.Spec.CredentialsRef
	if ref == nil || ref.Kind != "Secret" || ref.APIVersion != "v1" {
		return nil, reconcile.TerminalError(errUnsupportedCredentials)
	}
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if err := k.gardenCache.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read credentials: Secret %q: %w", key, err)
	}
	return secret, nil
}

// generatedSecret is the Secret in the garden with the credentials that the extension has generated, without its data.
func generatedSecret(bucket *corev1beta1.BackupBucket) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.GardenNamespace, Name: constants.SecretPrefixGeneratedBackupBucket + bucket.Name,
	}}
}
