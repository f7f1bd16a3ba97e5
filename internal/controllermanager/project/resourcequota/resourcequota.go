// Package resourcequota raises the ResourceQuotas of Projects for the objects that Gardener creates there for each Shoot, so that a new kind of
// such objects does not use up what members of the Project may create.
//
// Reads ResourceQuotas, Projects and Shoots; writes limits and annotations of ResourceQuotas. Source: compat/fleet.md, 7,
// "project-resourcequota".
package resourcequota

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// shootCount is the limit of Shoots in a ResourceQuota.
const shootCount corev1.ResourceName = "count/shoots.core.gardener.cloud"

// perShoot is how many objects of a kind Gardener creates in a Project for each Shoot.
type perShoot struct {
	limit      corev1.ResourceName
	annotation string
	// suffixes are those of the names of these objects.
	suffixes []string
}

var kinds = []perShoot{
	{limit: "count/configmaps", annotation: constants.QuotaConfigMapsPerShoot, suffixes: []string{
		constants.ShootProjectSecretSuffixCACluster, constants.ShootProjectConfigMapSuffixCAKubelet,
	}},
	{limit: "count/secrets", annotation: constants.QuotaSecretsPerShoot, suffixes: []string{
		constants.ShootProjectSecretSuffixCACluster, constants.ShootProjectSecretSuffixSSHKeypair,
		constants.ShootProjectSecretSuffixOldSSHKeypair, constants.ShootProjectSecretSuffixMonitoring,
	}},
}

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many ResourceQuotas are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("project-resourcequota").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&corev1.ResourceQuota{}, builder.WithPredicates(watch.NoDeletes(), watch.Updated(func(before, after *corev1.ResourceQuota) bool {
			// The usage in the status changes all the time.
			return !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) || !apiequality.Semantic.DeepEqual(before.Annotations, after.Annotations)
		}))).
		// A Project may adopt a namespace that has ResourceQuotas.
		Watches(&corev1beta1.Project{}, handler.EnqueueRequestsFromMapFunc(r.quotasOf), builder.WithPredicates(watch.NoDeletes(),
			watch.Updated(func(before, after *corev1beta1.Project) bool {
				return ptr.Deref(before.Spec.Namespace, "") != ptr.Deref(after.Spec.Namespace, "")
			}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

type reconciler struct {
	gardenCache client.Client
}

// quotasOf returns requests for the ResourceQuotas in the namespace of a Project.
func (r *reconciler) quotasOf(ctx context.Context, obj client.Object) []reconcile.Request {
	namespace := obj.(*corev1beta1.Project).Spec.Namespace //nolint:forcetypeassert // the kind that is watched
	if namespace == nil {
		return nil
	}
	quotas := &corev1.ResourceQuotaList{}
	if err := r.gardenCache.List(ctx, quotas, client.InNamespace(*namespace), client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing the ResourceQuotas of a Project", "namespace", *namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range quotas.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&quotas.Items[i])})
	}
	return requests
}

// Reconcile raises the limits of a ResourceQuota in the namespace of a Project.
func (r *reconciler) Reconcile(ctx context.Context, quota *corev1.ResourceQuota) (reconcile.Result, error) {
	if quota.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	projects, err := references.ProjectsOf(ctx, r.gardenCache, quota.Namespace)
	if err != nil || len(projects) == 0 {
		return reconcile.Result{}, err
	}
	shoots := &corev1beta1.ShootList{}
	if _, limited := quota.Spec.Hard[shootCount]; !limited {
		if err := r.gardenCache.List(ctx, shoots, client.InNamespace(quota.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return reconcile.Result{}, fmt.Errorf("list Shoots: %w", err)
		}
	}
	before := quota.DeepCopy()
	raise(quota, len(shoots.Items))
	if apiequality.Semantic.DeepEqual(before, quota) {
		return reconcile.Result{}, nil
	}
	logf.FromContext(ctx).Info("Raising ResourceQuota for what Gardener creates for Shoots", "before", before.Spec.Hard, "after", quota.Spec.Hard)
	// The new limits follow from those that were read.
	if err := r.gardenCache.Patch(ctx, quota, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return kube.Result(fmt.Errorf("raise limits: %w", err))
	}
	return reconcile.Result{}, nil
}

// raise raises the limits of a ResourceQuota for the Shoots that it allows, or for those that exist if it does not limit their number. An
// annotation records for how many objects per Shoot that was done. Limits and annotations are never lowered: what is unused of a limit may be in
// use by then, and a number that is lowered would be added again later.
func raise(quota *corev1.ResourceQuota, existing int) {
	shoots := int64(existing)
	if limit, ok := quota.Spec.Hard[shootCount]; ok {
		shoots = limit.Value()
	}
	for _, kind := range kinds {
		limit, ok := quota.Spec.Hard[kind.limit]
		if !ok {
			continue
		}
		wanted := int64(len(kind.suffixes))
		after := limit.Value()
		recorded, err := strconv.ParseInt(quota.Annotations[kind.annotation], 10, 64)
		switch {
		case err != nil || recorded < 0: // never done, or not by this controller
			after = max(after, wanted*shoots)
		case recorded >= wanted:
			continue
		default:
			after += (wanted - recorded) * shoots
		}
		if after != limit.Value() {
			quota.Spec.Hard[kind.limit] = *resource.NewQuantity(after, limit.Format)
		}
		metav1.SetMetaDataAnnotation(&quota.ObjectMeta, kind.annotation, strconv.FormatInt(wanted, 10))
	}
}
