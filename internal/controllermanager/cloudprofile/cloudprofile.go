// Package cloudprofile keeps CloudProfiles while Shoots or NamespacedCloudProfiles use them, and reports how their versions are classified at
// present.
//
// Reads CloudProfiles, Shoots and NamespacedCloudProfiles; writes finalizer and status of CloudProfiles. Source: concepts.txt, "CloudProfile
// Controller"; compat/fleet.md, 7, "cloudprofile".
package cloudprofile

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

const name = "cloudprofile"

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many CloudProfiles are reconciled at the same time.
	ConcurrentSyncs int
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	users := []client.Object{&corev1beta1.Shoot{}, &corev1beta1.NamespacedCloudProfile{}}
	b := builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// CloudProfiles have no generation.
		For(&corev1beta1.CloudProfile{}, builder.WithPredicates(watch.NoDeletes(), predicate.Or[client.Object](
			guard.MetadataChanged(), watch.Updated(func(before, after *corev1beta1.CloudProfile) bool {
				return !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) || !apiequality.Semantic.DeepEqual(before.Status, after.Status)
			}),
		)))
	for _, user := range users {
		// A new user changes nothing for the profile, which has the finalizer already.
		b = b.Watches(user, watch.ChangedReferences(references.CloudProfile), builder.WithPredicates(watch.NoCreates()))
	}
	return b.Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{
		Values: v, gardenCache: mgr.GetClient(),
		guard: guard.Guard{GardenCache: mgr.GetClient(), Recorder: mgr.GetEventRecorder(name), Users: users},
	}))
}

type reconciler struct {
	Values
	gardenCache client.Client
	guard       guard.Guard
}

// Reconcile guards a profile, and writes how its versions are classified until the next of them changes.
func (r *reconciler) Reconcile(ctx context.Context, profile *corev1beta1.CloudProfile) (reconcile.Result, error) {
	if err := r.guard.Keep(ctx, profile); err != nil {
		return kube.Result(fmt.Errorf("keep: %w", err))
	}
	if !controllerutil.ContainsFinalizer(profile, constants.FinalizerGardenerName) || profile.DeletionTimestamp != nil {
		return reconcile.Result{}, nil // it was added just now, which causes an event, or nothing new will use the profile
	}
	status, recheckIn := classify(&profile.Spec, r.Clock.Now())
	if !apiequality.Semantic.DeepEqual(status, profile.Status) {
		before := profile.DeepCopy()
		profile.Status = status
		if err := r.gardenCache.Status().Patch(ctx, profile, client.MergeFrom(before)); err != nil {
			return kube.Result(fmt.Errorf("write classifications: %w", err))
		}
	}
	return reconcile.Result{RequeueAfter: recheckIn}, nil
}
