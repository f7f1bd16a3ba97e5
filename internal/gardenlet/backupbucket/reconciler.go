package backupbucket

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/extension"
	"gardener.cloud/gardener/internal/kube"
)

// reportTimeout is what the write of the status may take, also after the end of a pass.
const reportTimeout = 5 * time.Second

// errUnsupported says that only an edit helps.
var errUnsupported = errors.New("spec.credentialsRef: only Secrets are supported")

type reconciler struct {
	Values
	gardenClient, seedClient client.Client
}

// Reconcile has the extension keep the bucket, or delete it.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	bucket := &corev1beta1.BackupBucket{}
	if err := r.gardenClient.Get(ctx, req.NamespacedName, bucket); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if bucket.Spec.SeedName == nil || *bucket.Spec.SeedName != r.SeedName {
		return reconcile.Result{}, nil
	}
	act, operation := r.keep, corev1beta1.LastOperationTypeReconcile
	if bucket.DeletionTimestamp != nil {
		act, operation = r.remove, corev1beta1.LastOperationTypeDelete
	}
	before := bucket.DeepCopy()
	verdict, err := act(ctx, bucket)
	if kube.Contested(err) {
		return kube.Result(err)
	}
	if err != nil {
		verdict = extension.Verdict{Error: &corev1beta1.LastError{Description: err.Error()}, Message: err.Error()}
	}
	extension.Record(&bucket.Status.LastOperation, &bucket.Status.LastError, operation, verdict,
		"The bucket is as it was ordered.", metav1.NewTime(r.Clock.Now()))
	err = errors.Join(err, r.report(ctx, before, bucket))
	if errors.Is(err, errUnsupported) {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	return reconcile.Result{}, err
}

// keep makes the bucket of the extension be as that in the garden, and tells how far it is. The status that it changes is not written yet.
func (r *reconciler) keep(ctx context.Context, bucket *corev1beta1.BackupBucket) (extension.Verdict, error) {
	if err := kube.AddFinalizer(ctx, r.gardenClient, bucket, constants.FinalizerGardenerName); err != nil {
		return extension.Verdict{}, err
	}
	credentials, err := r.credentials(ctx, bucket)
	if err != nil {
		return extension.Verdict{}, err
	}
	if err := kube.AddFinalizer(ctx, r.gardenClient, credentials, constants.FinalizerGardener); err != nil {
		return extension.Verdict{}, err
	}
	secret := copyOf(bucket)
	copied, err := controllerutil.CreateOrPatch(ctx, r.seedClient, secret, func() error {
		secret.Data, secret.Type = credentials.Data, credentials.Type
		return nil
	})
	if err != nil {
		return extension.Verdict{}, fmt.Errorf("copy credentials to Secret %q: %w", client.ObjectKeyFromObject(secret), err)
	}
	ordered := bucket.Annotations[constants.GardenerOperation] == constants.GardenerOperationReconcile
	order := ordered || copied != controllerutil.OperationResultNone || bucket.Status.ObservedGeneration != bucket.Generation
	inSeed := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: bucket.Name}}
	if _, err := controllerutil.CreateOrPatch(ctx, r.seedClient, inSeed, func() error {
		want := extensionsv1alpha1.BackupBucketSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{
				Type: bucket.Spec.Provider.Type, Class: inSeed.Spec.Class, ProviderConfig: bucket.Spec.ProviderConfig,
			},
			Region: bucket.Spec.Provider.Region, SecretRef: corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name},
		}
		if order || inSeed.UID == "" || !apiequality.Semantic.DeepEqual(inSeed.Spec, want) {
			logf.FromContext(ctx).Info("Ordering bucket", "backupBucket", bucket.Name)
			inSeed.Spec = want
			metav1.SetMetaDataAnnotation(&inSeed.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
			metav1.SetMetaDataAnnotation(&inSeed.ObjectMeta, constants.GardenerTimestamp, r.Clock.Now().UTC().Format(time.RFC3339Nano))
		}
		return nil
	}); err != nil {
		return extension.Verdict{}, fmt.Errorf("write BackupBucket %q in the seed: %w", bucket.Name, err)
	}
	if ordered {
		if err := kube.PatchMetadata(ctx, r.gardenClient, bucket, func(o *metav1.PartialObjectMetadata) {
			delete(o.Annotations, constants.GardenerOperation)
		}); err != nil {
			return extension.Verdict{}, err
		}
	}
	bucket.Status.ObservedGeneration = bucket.Generation
	verdict := extension.Judge(inSeed)
	if !verdict.Ready {
		return verdict, nil
	}
	bucket.Status.ProviderStatus = inSeed.Status.ProviderStatus
	return verdict, r.takeGenerated(ctx, bucket, inSeed.Status.GeneratedSecretRef)
}

// credentials reads the Secret with which the object store is reached.
func (r *reconciler) credentials(ctx context.Context, bucket *corev1beta1.BackupBucket) (*corev1.Secret, error) {
	ref := bucket.Spec.CredentialsRef
	if ref == nil || ref.Kind != "Secret" || ref.APIVersion != "v1" {
		return nil, errUnsupported
	}
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if err := r.gardenClient.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("Secret %q with the credentials is not there", key)
	} else if err != nil {
		return nil, fmt.Errorf("read credentials in Secret %q: %w", key, err)
	}
	return secret, nil
}

// copyOf is where the credentials are in the seed.
func copyOf(bucket *corev1beta1.BackupBucket) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "bucket-" + bucket.Name}}
}

// takeGenerated copies the Secret that the extension made to the garden.
func (r *reconciler) takeGenerated(ctx context.Context, bucket *corev1beta1.BackupBucket, ref *corev1.SecretReference) error {
	if ref == nil {
		bucket.Status.GeneratedSecretRef = nil
		return nil
	}
	made := &corev1.Secret{}
	if err := r.seedClient.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, made); err != nil {
		return fmt.Errorf("read generated Secret: %w", err)
	}
	inGarden := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: constants.SecretPrefixGeneratedBackupBucket + bucket.Name}}
	if _, err := controllerutil.CreateOrPatch(ctx, r.gardenClient, inGarden, func() error {
		inGarden.Data = made.Data
		inGarden.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(bucket, corev1beta1.SchemeGroupVersion.WithKind("BackupBucket"))}
		return nil
	}); err != nil {
		return fmt.Errorf("copy generated Secret to the garden: %w", err)
	}
	bucket.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: inGarden.Namespace, Name: inGarden.Name}
	return nil
}

// remove has the extension delete the bucket, and lets go of everything when it is gone.
func (r *reconciler) remove(ctx context.Context, bucket *corev1beta1.BackupBucket) (extension.Verdict, error) {
	if !controllerutil.ContainsFinalizer(bucket, constants.FinalizerGardenerName) {
		return extension.Verdict{Ready: true}, nil
	}
	generated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: constants.SecretPrefixGeneratedBackupBucket + bucket.Name}}
	if err := r.gardenClient.Delete(ctx, generated); client.IgnoreNotFound(err) != nil {
		return extension.Verdict{}, fmt.Errorf("delete generated Secret: %w", err)
	}
	inSeed := &extensionsv1alpha1.BackupBucket{}
	switch err := r.seedClient.Get(ctx, client.ObjectKeyFromObject(bucket), inSeed); {
	case err == nil:
		if inSeed.DeletionTimestamp == nil {
			// Extensions and the webhook of the seed want to be sure that somebody means it.
			if err := kube.PatchMetadata(ctx, r.seedClient, inSeed, func(o *metav1.PartialObjectMetadata) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
			}); err != nil {
				return extension.Verdict{}, err
			}
			if err := r.seedClient.Delete(ctx, inSeed); client.IgnoreNotFound(err) != nil {
				return extension.Verdict{}, fmt.Errorf("delete BackupBucket in the seed: %w", err)
			}
		}
		verdict := extension.Judge(inSeed)
		verdict.Ready, verdict.Message = false, "Waiting until the extension has deleted the bucket."
		if verdict.Error != nil {
			verdict.Message = verdict.Error.Description
		}
		return verdict, nil
	case !apierrors.IsNotFound(err):
		return extension.Verdict{}, fmt.Errorf("read BackupBucket in the seed: %w", err)
	}
	if err := r.seedClient.Delete(ctx, copyOf(bucket)); client.IgnoreNotFound(err) != nil {
		return extension.Verdict{}, fmt.Errorf("delete credentials in the seed: %w", err)
	}
	if credentials, err := r.credentials(ctx, bucket); err == nil {
		if err := r.release(ctx, bucket, credentials); err != nil {
			return extension.Verdict{}, err
		}
	}
	return extension.Verdict{Ready: true}, kube.RemoveFinalizer(ctx, r.gardenClient, bucket, constants.FinalizerGardenerName)
}

// release takes the finalizer off the credentials, unless another bucket of the seed needs them.
func (r *reconciler) release(ctx context.Context, bucket *corev1beta1.BackupBucket, credentials *corev1.Secret) error {
	all := &corev1beta1.BackupBucketList{}
	if err := r.gardenClient.List(ctx, all); err != nil {
		return err
	}
	for _, other := range all.Items {
		if other.Name != bucket.Name && apiequality.Semantic.DeepEqual(other.Spec.CredentialsRef, bucket.Spec.CredentialsRef) {
			return nil
		}
	}
	return kube.RemoveFinalizer(ctx, r.gardenClient, credentials, constants.FinalizerGardener)
}

// report sends what the status differs in.
func (r *reconciler) report(ctx context.Context, before, after *corev1beta1.BackupBucket) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	if apiequality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	patched := before.DeepCopy()
	patched.Status = after.Status
	if err := r.gardenClient.Status().Patch(ctx, patched, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}
