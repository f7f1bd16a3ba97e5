// Package namespacedcloudprofile merges NamespacedCloudProfiles with the CloudProfiles that they extend, and keeps them while Shoots use
// them.
//
// Reads NamespacedCloudProfiles, CloudProfiles and Shoots; writes finalizer and status of NamespacedCloudProfiles. Source: concepts.txt,
// "NamespacedCloudProfile Controller".
package namespacedcloudprofile

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/internal/controllermanager/uses"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

const name = "namespacedcloudprofile"

// Add adds the controller.
func Add(mgr manager.Manager, concurrentSyncs int) error {
	shoots := byShoots()
	r := &reconciler{
		client: mgr.GetClient(),
		guard:  guard.Guard{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(name), Uses: []guard.Use{shoots}},
	}
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		// The status is ours, and what extensions add to it stays until something it is made from changes.
		For(&corev1beta1.NamespacedCloudProfile{}, builder.WithPredicates(predicate.Or[client.Object](
			guard.MetadataChanged(), predicate.GenerationChangedPredicate{},
		))).
		Watches(&corev1beta1.CloudProfile{}, handler.EnqueueRequestsFromMapFunc(r.children), builder.WithPredicates(predicate.Funcs{
			// CloudProfiles have no generation.
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, after := e.ObjectOld.(*corev1beta1.CloudProfile), e.ObjectNew.(*corev1beta1.CloudProfile) //nolint:forcetypeassert // the kind that is watched
				return !apiequality.Semantic.DeepEqual(before.Spec, after.Spec)
			},
			// It goes when it has no children.
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Watches(shoots.User, watch.Mapped(shoots.Of), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
		})).
		Complete(r)
}

// byShoots is how Shoots use NamespacedCloudProfiles.
func byShoots() guard.Use {
	return guard.Use{
		User: &corev1beta1.Shoot{}, Users: &corev1beta1.ShootList{},
		Of: func(user client.Object) []reconcile.Request {
			ref, ok := uses.ProfileOf(user.(*corev1beta1.Shoot)) //nolint:forcetypeassert // only Shoots are watched for this use
			if !ok || ref.Kind != constants.CloudProfileReferenceKindNamespacedCloudProfile {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}}
		},
		By: func(profile client.Object) []client.ListOption {
			ref := uses.Ref{
				Kind:      constants.CloudProfileReferenceKindNamespacedCloudProfile,
				Namespace: profile.GetNamespace(), Name: profile.GetName(),
			}
			return []client.ListOption{client.MatchingFields{uses.ShootByProfile: ref.Key()}}
		},
	}
}

// children returns the profiles that extend a CloudProfile.
func (r *reconciler) children(ctx context.Context, parent client.Object) []reconcile.Request {
	list := &corev1beta1.NamespacedCloudProfileList{}
	if err := r.client.List(ctx, list, client.MatchingFields{uses.ProfileByParent: parent.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the profiles that extend a CloudProfile", "cloudProfile", parent.GetName())
		return nil
	}
	var requests []reconcile.Request
	for _, child := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&child)})
	}
	return requests
}
