// Package finalizer keeps ControllerRegistrations, and the clusters that extensions are installed in, until their
// ControllerInstallations are deleted.
//
// It reads ControllerInstallations and writes a finalizer on ControllerRegistrations, Seeds and Shoots that host their own control
// plane. Source: concepts.txt, ControllerRegistration controller, "ControllerRegistration Finalizer" and "Seed Finalizer"
// reconcilers.
package finalizer

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// Values are what the controllers work with.
type Values struct {
	// ConcurrentSyncs is how many objects each of the controllers reconciles at the same time.
	ConcurrentSyncs int
}

// Add adds the controllers to a manager: one for ControllerRegistrations, one for Seeds, and one for self-hosted Shoots.
func Add(mgr manager.Manager, v Values) error {
	err := add(mgr, v, "controllerregistration-controllerregistration-finalizer", &reconciler[*corev1beta1.ControllerRegistration]{
		kind: references.ControllerRegistration,
		selector: func(r *corev1beta1.ControllerRegistration) client.MatchingFields {
			return client.MatchingFields{"spec.registrationRef.name": r.Name}
		},
	}, &corev1beta1.ControllerRegistration{})
	if err != nil {
		return err
	}
	err = add(mgr, v, "controllerregistration-cluster-finalizer-seed", &reconciler[*corev1beta1.Seed]{
		kind: references.Seed,
		selector: func(s *corev1beta1.Seed) client.MatchingFields {
			return client.MatchingFields{"spec.seedRef.name": s.Name}
		},
	}, &corev1beta1.Seed{})
	if err != nil {
		return err
	}
	return add(mgr, v, "controllerregistration-cluster-finalizer-shoot", &reconciler[*corev1beta1.Shoot]{
		kind:     references.Shoot,
		concerns: (*corev1beta1.Shoot).SelfHosted,
		selector: func(s *corev1beta1.Shoot) client.MatchingFields {
			return client.MatchingFields{"spec.shootRef.namespace": s.Namespace, "spec.shootRef.name": s.Name}
		},
	}, &corev1beta1.Shoot{})
}

// add adds the controller for the kind of an empty object.
func add[T client.Object](mgr manager.Manager, v Values, name string, r *reconciler[T], object T) error {
	r.gardenCache, r.gardenAPI = mgr.GetClient(), mgr.GetAPIReader()
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// The finalizer is added once, unless a user removes it. Apart from it, only the deletion of the object counts.
		For(object, builder.WithPredicates(watch.NoDeletes(), watch.Updated(func(_, after T) bool { return r.pending(after) }))).
		// An object in deletion waits until its last installation is deleted.
		Watches(&corev1beta1.ControllerInstallation{}, watch.References(r.kind), builder.WithPredicates(watch.NoCreates(), watch.NoUpdates())).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// reconciler keeps objects of a kind until no ControllerInstallation refers to them.
type reconciler[T client.Object] struct {
	gardenCache client.Client
	gardenAPI   client.Reader
	// kind is the kind of the objects.
	kind string
	// concerns reports whether an object is guarded. Nil means that all are.
	concerns func(T) bool
	// selector returns the field selector, for the API server, of the installations of an object.
	selector func(T) client.MatchingFields
}

// pending reports whether the finalizer of an object has to be added, or may have to be removed.
func (r *reconciler[T]) pending(obj T) bool {
	guarded := has(obj)
	if obj.GetDeletionTimestamp() != nil {
		return guarded
	}
	return !guarded && (r.concerns == nil || r.concerns(obj))
}

// Reconcile adds the finalizer, or removes it when the object is being deleted and has no installation any more.
func (r *reconciler[T]) Reconcile(ctx context.Context, obj T) (reconcile.Result, error) {
	if !r.pending(obj) {
		return reconcile.Result{}, nil
	}
	log := logf.FromContext(ctx)
	if obj.GetDeletionTimestamp() == nil {
		log.Info("Adding finalizer")
		return kube.Result(kube.AddFinalizer(ctx, r.gardenCache, obj, constants.FinalizerControllerRegistration))
	}
	// The cache may miss an installation that was created a moment ago. Deletions are rare enough to read from the API server.
	installations := &corev1beta1.ControllerInstallationList{}
	if err := r.gardenAPI.List(ctx, installations, r.selector(obj), client.Limit(1)); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ControllerInstallations: %w", err)
	}
	if len(installations.Items) > 0 {
		log.Info("Waiting for installations to be deleted", "controllerInstallation", installations.Items[0].Name)
		return reconcile.Result{}, nil
	}
	log.Info("Removing finalizer")
	return kube.Result(kube.RemoveFinalizer(ctx, r.gardenCache, obj, constants.FinalizerControllerRegistration))
}

func has(obj client.Object) bool {
	return slices.Contains(obj.GetFinalizers(), constants.FinalizerControllerRegistration)
}
