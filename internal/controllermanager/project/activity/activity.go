// Package activity records when a Project was last used, so that one whose objects live only for a short time is not taken for an unused one.
//
// Reads Projects, Shoots, BackupEntries, Plants, and metadata of Quotas, Secrets and InternalSecrets; writes status.lastActivityTimestamp of Projects.
// Source: concepts.txt, Project controller, "Activity" reconciler.
package activity

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// recent is how old an object may be when its creation is observed: at a start, each object that exists is observed.
const recent = time.Hour

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Projects are reconciled at the same time.
	ConcurrentSyncs int
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: mgr.GetClient()}
	changed := builder.WithPredicates(watch.NoDeletes(), predicate.GenerationChangedPredicate{})
	// Of credentials and quotas, those count that a binding refers to. The binding of an object may be deleted in the update that is observed.
	bound := builder.WithPredicates(watch.NoDeletes(), predicate.ResourceVersionChangedPredicate{}, predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return referenced(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return referenced(e.ObjectOld) || referenced(e.ObjectNew) },
	})
	use := r.use()
	return builder.ControllerManagedBy(mgr).Named("project-activity").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// A deletion is a new generation, too.
		Watches(&corev1beta1.Shoot{}, use, changed).
		Watches(&corev1beta1.BackupEntry{}, use, changed).
		Watches(&corev1beta1.Plant{}, use, changed).
		WatchesMetadata(kube.Metadata(corev1beta1.SchemeGroupVersion.WithKind(references.Quota)), use, bound).
		WatchesMetadata(kube.Metadata(corev1.SchemeGroupVersion.WithKind(references.Secret)), use, bound).
		WatchesMetadata(kube.Metadata(corev1beta1.SchemeGroupVersion.WithKind(references.InternalSecret)), use, bound).
		Complete(r)
}

// referenced reports whether a binding refers to an object: then it has one of these labels.
func referenced(obj client.Object) bool {
	labels := obj.GetLabels()
	_, bySecretBinding := labels[constants.SecretBindingReference]
	_, byCredentialsBinding := labels[constants.CredentialsBindingReference]
	return bySecretBinding || byCredentialsBinding
}

type reconciler struct {
	Values
	gardenCache client.Client
}

// use enqueues the Project of an object that was updated, or created after the last activity that is recorded.
func (r *reconciler) use() handler.EventHandler {
	enqueue := func(ctx context.Context, obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request], since *time.Time) {
		keys, err := references.ProjectsOf(ctx, r.gardenCache, obj.GetNamespace())
		if err != nil {
			logf.FromContext(ctx).Error(err, "Listing the Project of a namespace", "namespace", obj.GetNamespace())
			return
		}
		for _, key := range keys {
			if since != nil && !r.newer(ctx, key, *since) {
				continue
			}
			queue.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if created := e.Object.GetCreationTimestamp().Time; r.Clock.Since(created) <= recent {
				enqueue(ctx, e.Object, queue, &created)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.ObjectNew, queue, nil)
		},
	}
}

// newer reports whether a time is after the last activity that is recorded for a Project. Otherwise every restart would be an activity.
func (r *reconciler) newer(ctx context.Context, key client.ObjectKey, at time.Time) bool {
	project := &corev1beta1.Project{}
	if err := r.gardenCache.Get(ctx, key, project, client.UnsafeDisableDeepCopy); err != nil {
		return false // it was deleted meanwhile
	}
	last := project.Status.LastActivityTimestamp
	return last == nil || at.After(last.Time)
}

// Reconcile records that a Project is used now.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	project := &corev1beta1.Project{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, project); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := metav1.NewTime(r.Clock.Now()).Rfc3339Copy()
	if last := project.Status.LastActivityTimestamp; project.DeletionTimestamp != nil || last != nil && !now.After(last.Time) {
		return reconcile.Result{}, nil
	}
	before := project.DeepCopy()
	project.Status.LastActivityTimestamp = &now
	if err := r.gardenCache.Status().Patch(ctx, project, client.MergeFrom(before)); err != nil {
		return kube.Result(fmt.Errorf("record activity: %w", err))
	}
	return reconcile.Result{}, nil
}
