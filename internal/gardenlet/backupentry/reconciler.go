package backupentry

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

type reconciler struct {
	Values
	gardenClient, seedClient client.Client
	// gracePeriod is how long backups outlive their shoot.
	gracePeriod time.Duration
}

// Reconcile has the extension keep the entry, or delete it.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	entry := &corev1beta1.BackupEntry{}
	if err := r.gardenClient.Get(ctx, req.NamespacedName, entry); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if entry.Spec.SeedName == nil || *entry.Spec.SeedName != r.SeedName {
		return reconcile.Result{}, nil
	}
	before := entry.DeepCopy()
	act, operation := r.keep, corev1beta1.LastOperationTypeReconcile
	var wait time.Duration
	if entry.DeletionTimestamp != nil {
		act, operation = r.remove, corev1beta1.LastOperationTypeDelete
		if wait = r.graceLeft(entry); wait > 0 {
			act = postpone
		}
	}
	verdict, err := act(ctx, entry)
	if kube.Contested(err) {
		return kube.Result(err)
	}
	if err != nil {
		verdict = extension.Verdict{Error: &corev1beta1.LastError{Description: err.Error()}, Message: err.Error()}
	}
	extension.Record(&entry.Status.LastOperation, &entry.Status.LastError, operation, verdict,
		"The entry is as it was ordered.", metav1.NewTime(r.Clock.Now()))
	if err := errors.Join(err, r.report(ctx, before, entry)); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// graceLeft is how long the backups of a deleted entry are still kept.
func (r *reconciler) graceLeft(entry *corev1beta1.BackupEntry) time.Duration {
	purposes := r.Config.DeletionGracePeriodShootPurposes
	purpose := corev1beta1.ShootPurpose(entry.Annotations[constants.ShootPurposeAnnotation])
	if entry.Annotations[constants.BackupEntryForceDeletion] == "true" || len(purposes) > 0 && !slices.Contains(purposes, purpose) {
		return 0
	}
	return max(0, entry.DeletionTimestamp.Add(r.gracePeriod).Sub(r.Clock.Now()))
}

// postpone says that the backups are still kept.
func postpone(_ context.Context, _ *corev1beta1.BackupEntry) (extension.Verdict, error) {
	return extension.Verdict{Message: "The backups are kept until the grace period is over; the annotation " +
		constants.BackupEntryForceDeletion + "=true deletes them at once."}, nil
}

// usable returns why there can be no entry in a bucket yet, or nil if there can.
func usable(bucket *corev1beta1.BackupBucket) error {
	if last := bucket.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
		return fmt.Errorf("BackupBucket %q is not ready", bucket.Name)
	}
	return nil
}

// keep makes the entry of the extension be as that in the garden, and tells how far it is. The status that it changes is not written yet.
func (r *reconciler) keep(ctx context.Context, entry *corev1beta1.BackupEntry) (extension.Verdict, error) {
	if err := kube.AddFinalizer(ctx, r.gardenClient, entry, constants.FinalizerGardenerName); err != nil {
		return extension.Verdict{}, err
	}
	bucket := &corev1beta1.BackupBucket{}
	if err := r.gardenClient.Get(ctx, client.ObjectKey{Name: entry.Spec.BucketName}, bucket); err != nil {
		return extension.Verdict{}, fmt.Errorf("read BackupBucket %q: %w", entry.Spec.BucketName, err)
	}
	if err := usable(bucket); err != nil {
		return extension.Verdict{Message: "Waiting: " + err.Error() + "."}, nil
	}
	secret, copied, err := r.copyCredentials(ctx, entry, bucket)
	if err != nil {
		return extension.Verdict{}, err
	}
	ordered := entry.Annotations[constants.GardenerOperation] == constants.GardenerOperationReconcile
	order := ordered || copied || entry.Status.ObservedGeneration != entry.Generation
	inSeed := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: entry.Name}}
	if _, err := controllerutil.CreateOrPatch(ctx, r.seedClient, inSeed, func() error {
		want := extensionsv1alpha1.BackupEntrySpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{
				Type: bucket.Spec.Provider.Type, Class: inSeed.Spec.Class, ProviderConfig: bucket.Spec.ProviderConfig,
			},
			BackupBucketProviderStatus: bucket.Status.ProviderStatus, Region: bucket.Spec.Provider.Region, BucketName: bucket.Name,
			SecretRef: corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name},
		}
		if order || inSeed.UID == "" || !apiequality.Semantic.DeepEqual(inSeed.Spec, want) {
			logf.FromContext(ctx).Info("Ordering entry", "backupEntry", entry.Name)
			inSeed.Spec = want
			metav1.SetMetaDataAnnotation(&inSeed.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
			metav1.SetMetaDataAnnotation(&inSeed.ObjectMeta, constants.GardenerTimestamp, r.Clock.Now().UTC().Format(time.RFC3339Nano))
		}
		return nil
	}); err != nil {
		return extension.Verdict{}, fmt.Errorf("write BackupEntry %q in the seed: %w", entry.Name, err)
	}
	if ordered {
		if err := kube.PatchMetadata(ctx, r.gardenClient, entry, func(o *metav1.PartialObjectMetadata) {
			delete(o.Annotations, constants.GardenerOperation)
		}); err != nil {
			return extension.Verdict{}, err
		}
	}
	entry.Status.ObservedGeneration, entry.Status.SeedName = entry.Generation, entry.Spec.SeedName
	return extension.Judge(inSeed), nil
}

// copyCredentials copies what reaches the bucket to the seed: what the extension made for the bucket, or what the bucket was made with. It
// tells whether anything changed.
func (r *reconciler) copyCredentials(ctx context.Context, entry *corev1beta1.BackupEntry, bucket *corev1beta1.BackupBucket) (*corev1.Secret, bool, error) {
	var key client.ObjectKey
	switch made, given := bucket.Status.GeneratedSecretRef, bucket.Spec.CredentialsRef; {
	case made != nil:
		key = client.ObjectKey{Namespace: made.Namespace, Name: made.Name}
	case given != nil && given.Kind == "Secret":
		key = client.ObjectKey{Namespace: given.Namespace, Name: given.Name}
	default:
		return nil, false, fmt.Errorf("BackupBucket %q has no Secret with credentials", bucket.Name)
	}
	credentials := &corev1.Secret{}
	if err := r.gardenClient.Get(ctx, key, credentials); err != nil {
		return nil, false, fmt.Errorf("read credentials of BackupBucket %q: %w", bucket.Name, err)
	}
	secret := copyOf(entry)
	result, err := controllerutil.CreateOrPatch(ctx, r.seedClient, secret, func() error {
		secret.Data, secret.Type = credentials.Data, credentials.Type
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("copy credentials to Secret %q: %w", client.ObjectKeyFromObject(secret), err)
	}
	return secret, result != controllerutil.OperationResultNone, nil
}

// copyOf is where the credentials are in the seed.
func copyOf(entry *corev1beta1.BackupEntry) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "entry-" + entry.Name}}
}

// remove has the extension delete the backups, and lets go of everything when they are gone.
func (r *reconciler) remove(ctx context.Context, entry *corev1beta1.BackupEntry) (extension.Verdict, error) {
	if !controllerutil.ContainsFinalizer(entry, constants.FinalizerGardenerName) {
		return extension.Verdict{Ready: true}, nil
	}
	inSeed := &extensionsv1alpha1.BackupEntry{}
	switch err := r.seedClient.Get(ctx, client.ObjectKey{Name: entry.Name}, inSeed); {
	case err == nil:
		return r.deleteInSeed(ctx, inSeed)
	case !apierrors.IsNotFound(err):
		return extension.Verdict{}, fmt.Errorf("read BackupEntry in the seed: %w", err)
	}
	if err := r.seedClient.Delete(ctx, copyOf(entry)); client.IgnoreNotFound(err) != nil {
		return extension.Verdict{}, fmt.Errorf("delete credentials in the seed: %w", err)
	}
	return extension.Verdict{Ready: true}, kube.RemoveFinalizer(ctx, r.gardenClient, entry, constants.FinalizerGardenerName)
}

func (r *reconciler) deleteInSeed(ctx context.Context, inSeed *extensionsv1alpha1.BackupEntry) (extension.Verdict, error) {
	if inSeed.DeletionTimestamp == nil {
		// Extensions and the webhook of the seed want to be sure that somebody means it.
		if err := kube.PatchMetadata(ctx, r.seedClient, inSeed, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
		}); err != nil {
			return extension.Verdict{}, err
		}
		if err := r.seedClient.Delete(ctx, inSeed); client.IgnoreNotFound(err) != nil {
			return extension.Verdict{}, fmt.Errorf("delete BackupEntry in the seed: %w", err)
		}
	}
	verdict := extension.Judge(inSeed)
	verdict.Ready, verdict.Message = false, "Waiting until the extension has deleted the backups."
	if verdict.Error != nil {
		verdict.Message = verdict.Error.Description
	}
	return verdict, nil
}

// report sends what the status differs in.
func (r *reconciler) report(ctx context.Context, before, after *corev1beta1.BackupEntry) error {
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
