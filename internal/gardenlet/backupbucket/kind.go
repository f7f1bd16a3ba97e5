package backupbucket

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/gardenlet/backup"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage/usercredential"
)

// kind is what is particular to BackupBuckets.
type kind struct {
	gardenCache, seedCache client.Client
	// gardenAPI reads credentials, which are in no cache.
	gardenAPI client.Reader
}

func (*kind) SeedName(bucket *corev1beta1.BackupBucket) *string { return bucket.Spec.SeedName }

// Operation is always Reconcile, as the seed of a BackupBucket cannot change.
func (*kind) Operation(*corev1beta1.BackupBucket) corev1beta1.LastOperationType {
	return corev1beta1.LastOperationTypeReconcile
}

// State returns none: it is for what is restored.
func (*kind) State(context.Context, *corev1beta1.BackupBucket) (extensionobject.State, error) {
	return extensionobject.State{}, nil
}

// Migrated does nothing: BackupBuckets do not migrate.
func (*kind) Migrated(*corev1beta1.BackupBucket) {}

func (*kind) Status(bucket *corev1beta1.BackupBucket) backup.Status {
	s := &bucket.Status
	return backup.Status{ObservedGeneration: &s.ObservedGeneration, LastOperation: &s.LastOperation, LastError: &s.LastError}
}

func (*kind) CopyName(bucket *corev1beta1.BackupBucket) string { return "bucket-" + bucket.Name }

// Credentials reads the credentials that the BackupBucket refers to.
func (k *kind) Credentials(ctx context.Context, bucket *corev1beta1.BackupBucket) (usercredential.Credential, error) {
	return usercredential.ReadFor(ctx, k.gardenAPI, usercredential.UserOf("BackupBucket", bucket), ptr.Deref(bucket.Spec.CredentialsRef, corev1.ObjectReference{}))
}

// Prepare returns the credentials that the BackupBucket refers to. Their object gets a finalizer.
func (k *kind) Prepare(
	ctx context.Context, bucket *corev1beta1.BackupBucket,
) (usercredential.Credential, func(*extensionsv1alpha1.BackupBucket, corev1.SecretReference), error) {
	credentials, err := k.Credentials(ctx, bucket)
	if err != nil {
		return credentials, nil, err
	}
	object, err := readMetadata(ctx, k.gardenAPI, *bucket.Spec.CredentialsRef)
	if err != nil {
		return credentials, nil, err
	}
	if err := kube.AddFinalizer(ctx, k.gardenCache, object, constants.FinalizerGardener); err != nil {
		return credentials, nil, err
	}
	return credentials, func(resource *extensionsv1alpha1.BackupBucket, ref corev1.SecretReference) {
		metav1.SetMetaDataAnnotation(&resource.ObjectMeta, constants.BackupBucketGeneratedSecretNamespace, constants.GardenNamespace)
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
	if err := k.refer(ctx, bucket, corev1.SecretReference{Namespace: inGarden.Namespace, Name: inGarden.Name}); err != nil {
		return fmt.Errorf("name generated Secret in the status: %w", err)
	}
	if _, err := controllerutil.CreateOrPatch(ctx, k.gardenCache, inGarden, func() error {
		inGarden.Data = generated.Data
		inGarden.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(bucket, corev1beta1.SchemeGroupVersion.WithKind("BackupBucket"))}
		return nil
	}); err != nil {
		return fmt.Errorf("copy generated Secret to the garden: %w", err)
	}
	return nil
}

// refer writes a reference to the generated Secret into the status, before the rest of the status: a gardenlet may only read and change the Secret
// if a BackupBucket of its seed refers to it.
func (k *kind) refer(ctx context.Context, bucket *corev1beta1.BackupBucket, ref corev1.SecretReference) error {
	if ptr.Deref(bucket.Status.GeneratedSecretRef, corev1.SecretReference{}) == ref {
		return nil
	}
	after := bucket.DeepCopy()
	after.Status.GeneratedSecretRef = &ref
	if err := k.gardenCache.Status().Patch(ctx, after, client.MergeFrom(bucket)); err != nil {
		return err
	}
	bucket.Status.GeneratedSecretRef = &ref
	return nil
}

// BeforeDeletion deletes the generated credentials in the garden.
func (k *kind) BeforeDeletion(ctx context.Context, bucket *corev1beta1.BackupBucket) error {
	if err := k.gardenCache.Delete(ctx, generatedSecret(bucket)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete generated Secret: %w", err)
	}
	return nil
}

// AfterDeletion removes the finalizer of the credentials.
func (k *kind) AfterDeletion(ctx context.Context, bucket *corev1beta1.BackupBucket) error {
	return ReleaseCredentials(ctx, k.gardenCache, k.gardenAPI, bucket)
}

// ReleaseCredentials removes the finalizer of the credentials of a BackupBucket, unless another BackupBucket of the seed uses them. A gardenlet may only do
// that while the BackupBucket refers to them.
func ReleaseCredentials(ctx context.Context, gardenCache client.Client, gardenAPI client.Reader, bucket *corev1beta1.BackupBucket) error {
	ref := ptr.Deref(bucket.Spec.CredentialsRef, corev1.ObjectReference{})
	if ref.Kind != usercredential.Secret && ref.Kind != usercredential.WorkloadIdentity {
		return nil
	}
	object, err := readMetadata(ctx, gardenAPI, ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	all := &corev1beta1.BackupBucketList{}
	if err := gardenCache.List(ctx, all); err != nil {
		return fmt.Errorf("list BackupBuckets: %w", err)
	}
	for _, other := range all.Items {
		if other.Name != bucket.Name && apiequality.Semantic.DeepEqual(other.Spec.CredentialsRef, bucket.Spec.CredentialsRef) {
			return nil
		}
	}
	return kube.RemoveFinalizer(ctx, gardenCache, object, constants.FinalizerGardener)
}

// readMetadata reads the metadata of the object with the credentials.
func readMetadata(ctx context.Context, gardenAPI client.Reader, ref corev1.ObjectReference) (*metav1.PartialObjectMetadata, error) {
	object, key := kube.Metadata(ref.GroupVersionKind()), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if err := gardenAPI.Get(ctx, key, object); err != nil {
		return nil, fmt.Errorf("read metadata of %s %q: %w", ref.Kind, key, err)
	}
	return object, nil
}

// generatedSecret is the Secret in the garden with the credentials that the extension has generated, without its data.
func generatedSecret(bucket *corev1beta1.BackupBucket) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.GardenNamespace, Name: constants.SecretPrefixGeneratedBackupBucket + bucket.Name,
	}}
}
