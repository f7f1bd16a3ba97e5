package bastion

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/technicalid"
)

// retryPeriod is how long after a request a Bastion that has failed is requested again: a user waits for it.
const retryPeriod = time.Minute

type reconciler struct {
	Values
	gardenCache client.Client
	gardenAPI   client.Reader
	seedCache   client.Client
}

// Reconcile applies or deletes the Bastion in the seed, and reports how far its extension is.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	bastion := &operationsv1alpha1.Bastion{}
	err := r.gardenCache.Get(ctx, req.NamespacedName, bastion)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	exists := err == nil
	if err := r.deleteOrphans(ctx, req.NamespacedName, bastion.Spec.ShootRef.Name); err != nil || !exists {
		return kube.Result(err)
	}
	if ptr.Deref(bastion.Spec.SeedName, "") != r.SeedName {
		return reconcile.Result{}, nil
	}
	shoot, err := r.shootOf(ctx, bastion)
	if err != nil {
		return reconcile.Result{}, err
	}
	if bastion.DeletionTimestamp != nil {
		return kube.Result(r.delete(ctx, bastion, shoot))
	}
	if shoot == nil || shoot.Status.TechnicalID == "" {
		logf.FromContext(ctx).V(1).Info("Waiting for the control plane of the Shoot")
		return reconcile.Result{}, nil // it causes an event
	}
	if err := kube.AddFinalizer(ctx, r.gardenCache, bastion, constants.FinalizerGardenerName); err != nil {
		return kube.Result(err)
	}
	if !controllerutil.ContainsFinalizer(bastion, constants.FinalizerGardenerName) {
		return reconcile.Result{}, nil // it was added just now, which causes an event
	}
	inSeed, err := r.apply(ctx, bastion, shoot)
	if kube.Contested(err) {
		return kube.Result(err)
	}
	if err := errors.Join(err, r.report(ctx, bastion, outcome(inSeed, err))); err != nil {
		return kube.Result(err)
	}
	after, failed := retryIn(inSeed, r.Clock.Now())
	if !failed {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(after, time.Second)}, nil // it may have failed after the request above
}

// retryIn returns after which time a Bastion that has failed is requested again. It is false for one that has not failed.
func retryIn(inSeed *extensionsv1alpha1.Bastion, now time.Time) (time.Duration, bool) {
	if extensionobject.Judge(inSeed).Error == nil {
		return 0, false
	}
	requested, err := time.Parse(time.RFC3339Nano, inSeed.Annotations[constants.GardenerTimestamp])
	if err != nil {
		return 0, true
	}
	return max(requested.Add(retryPeriod).Sub(now), 0), true
}

// shootOf returns the Shoot of a Bastion, or nil if it does not exist or has no control plane on this seed: then a gardenlet may not read it. The
// cache may be a moment behind.
func (r *reconciler) shootOf(ctx context.Context, bastion *operationsv1alpha1.Bastion) (*corev1beta1.Shoot, error) {
	key := client.ObjectKey{Namespace: bastion.Namespace, Name: bastion.Spec.ShootRef.Name}
	shoot := &corev1beta1.Shoot{}
	err := r.gardenCache.Get(ctx, key, shoot)
	if apierrors.IsNotFound(err) {
		err = r.gardenAPI.Get(ctx, key, shoot)
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, fmt.Errorf("read Shoot %q: %w", key, err)
	}
	return shoot, nil
}

// apply creates or updates the Bastion in the seed, and requests its reconciliation if that changes it.
func (r *reconciler) apply(ctx context.Context, bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot) (*extensionsv1alpha1.Bastion, error) {
	inSeed := inSeed(bastion, shoot)
	_, err := controllerutil.CreateOrPatch(ctx, r.seedCache, inSeed, func() error {
		before := inSeed.Spec.DeepCopy()
		inSeed.Spec.Type = shoot.Spec.Provider.Type
		inSeed.Spec.Ingress = nil
		for _, policy := range bastion.Spec.Ingress {
			inSeed.Spec.Ingress = append(inSeed.Spec.Ingress, extensionsv1alpha1.BastionIngressPolicy{IPBlock: policy.IPBlock})
		}
		if inSeed.UID == "" { // it is immutable, and so is the key
			inSeed.Spec.UserData = userData(bastion.Spec.SSHPublicKey)
		}
		after, failed := retryIn(inSeed, r.Clock.Now())
		if inSeed.UID == "" || !apiequality.Semantic.DeepEqual(before, &inSeed.Spec) || failed && after == 0 {
			logf.FromContext(ctx).Info("Requesting reconciliation by the extension", "bastion", client.ObjectKeyFromObject(inSeed))
			metav1.SetMetaDataAnnotation(&inSeed.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
			metav1.SetMetaDataAnnotation(&inSeed.ObjectMeta, constants.GardenerTimestamp, r.Clock.Now().UTC().Format(time.RFC3339Nano))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("apply Bastion %q in the seed: %w", client.ObjectKeyFromObject(inSeed), err)
	}
	return inSeed, nil
}

// inSeed returns the Bastion in the seed, without its spec.
func inSeed(bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot) *extensionsv1alpha1.Bastion {
	return &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: bastion.Name}}
}

// delete deletes the Bastion in the seed, and then releases that in the garden. Without a Shoot, there is no control plane namespace any more. One without
// the finalizer may have a machine, too: members of the project can remove it, and keep the Bastion with one of their own.
func (r *reconciler) delete(ctx context.Context, bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot) error {
	if shoot != nil && shoot.Status.TechnicalID != "" {
		if err := r.report(ctx, bastion, deleting()); err != nil {
			return err
		}
		inSeed := inSeed(bastion, shoot)
		err := r.SeedAPI.Get(ctx, client.ObjectKeyFromObject(inSeed), inSeed)
		if err == nil {
			return r.deleteInSeed(ctx, inSeed, forced(shoot)) // when it is gone, that is an event
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("read Bastion %q in the seed: %w", client.ObjectKeyFromObject(inSeed), err)
		}
	}
	return kube.RemoveFinalizer(ctx, r.gardenCache, bastion, constants.FinalizerGardenerName)
}

func (r *reconciler) deleteInSeed(ctx context.Context, inSeed *extensionsv1alpha1.Bastion, force bool) error {
	if force {
		err := kube.PatchMetadata(ctx, r.SeedAPI, inSeed, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationForceDeletion, "true")
		})
		if err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return extensionobject.Delete(ctx, extensionobject.Values{Client: r.SeedAPI, Clock: r.Clock}, inSeed)
}

// deleteOrphans deletes Bastions in the seed that were created for one of the garden which does not exist any more, or is for another Shoot now,
// the one with the given name. Their machines would run on.
func (r *reconciler) deleteOrphans(ctx context.Context, key client.ObjectKey, shootName string) error {
	list := &extensionsv1alpha1.BastionList{}
	if err := r.seedCache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Bastions in the seed: %w", err)
	}
	var errs []error
	for i := range list.Items {
		inSeed := &list.Items[i]
		if inSeed.Name != key.Name {
			continue
		}
		shoot, err := technicalid.Shoot(ctx, r.gardenCache, inSeed.Namespace)
		if err == nil && shoot != nil && shoot.Namespace == key.Namespace && shoot.Name != shootName {
			logf.FromContext(ctx).Info("Deleting Bastion in the seed, as it does not exist in the garden", "bastion", client.ObjectKeyFromObject(inSeed))
			err = r.deleteInSeed(ctx, inSeed.DeepCopy(), forced(shoot))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
