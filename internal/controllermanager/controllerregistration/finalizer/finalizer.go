// Package finalizer keeps ControllerRegistrations, and the clusters that extensions are installed in, until their
// ControllerInstallations are gone.
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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/index"
	"gardener.cloud/gardener/internal/kube"
)

// concurrentSyncs is not configurable.
const concurrentSyncs = 5

// AddRegistration adds the controller for ControllerRegistrations to a manager.
func AddRegistration(mgr manager.Manager) error {
	return add(mgr, "controllerregistration-controllerregistration-finalizer", &reconciler[*corev1beta1.ControllerRegistration]{
		selector: func(r *corev1beta1.ControllerRegistration) client.MatchingFields {
			return client.MatchingFields{"spec.registrationRef.name": r.Name}
		},
	}, &corev1beta1.ControllerRegistration{}, func(i *corev1beta1.ControllerInstallation) (string, string) {
		return "", i.Spec.RegistrationRef.Name
	})
}

// AddSeed adds the controller for Seeds to a manager.
func AddSeed(mgr manager.Manager) error {
	return add(mgr, "controllerregistration-cluster-finalizer-seed", &reconciler[*corev1beta1.Seed]{
		selector: func(s *corev1beta1.Seed) client.MatchingFields {
			return client.MatchingFields{"spec.seedRef.name": s.Name}
		},
	}, &corev1beta1.Seed{}, func(i *corev1beta1.ControllerInstallation) (string, string) {
		if i.Spec.SeedRef == nil {
			return "", ""
		}
		return "", i.Spec.SeedRef.Name
	})
}

// AddShoot adds the controller for Shoots that host their own control plane to a manager. Other Shoots are left alone.
func AddShoot(mgr manager.Manager) error {
	return add(mgr, "controllerregistration-cluster-finalizer-shoot", &reconciler[*corev1beta1.Shoot]{
		concerns: index.SelfHosted,
		selector: func(s *corev1beta1.Shoot) client.MatchingFields {
			return client.MatchingFields{"spec.shootRef.namespace": s.Namespace, "spec.shootRef.name": s.Name}
		},
	}, &corev1beta1.Shoot{}, func(i *corev1beta1.ControllerInstallation) (string, string) {
		if i.Spec.ShootRef == nil {
			return "", ""
		}
		return i.Spec.ShootRef.Namespace, i.Spec.ShootRef.Name
	})
}

// add adds the controller for a kind. The owner of an installation is the object that it keeps, or nothing.
func add[T client.Object](
	mgr manager.Manager, name string, r *reconciler[T], kind T, owner func(*corev1beta1.ControllerInstallation) (namespace, name string),
) error {
	r.gardenClient, r.live = mgr.GetClient(), mgr.GetAPIReader()
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		For(kind, builder.WithPredicates(predicate.Funcs{
			// The finalizer is put on once, and somebody may take it off; nothing else of the object counts but its deletion.
			UpdateFunc: func(e event.UpdateEvent) bool {
				return r.pending(e.ObjectNew.(T)) //nolint:forcetypeassert // the kind that is watched
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Watches(&corev1beta1.ControllerInstallation{}, handler.EnqueueRequestsFromMapFunc(func(
			_ context.Context, obj client.Object,
		) []reconcile.Request {
			namespace, name := owner(obj.(*corev1beta1.ControllerInstallation)) //nolint:forcetypeassert // the kind that is watched
			if name == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
		}), builder.WithPredicates(predicate.Funcs{ // The last one that goes lets the object go.
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// reconciler keeps objects of a kind until no ControllerInstallation refers to them.
type reconciler[T client.Object] struct {
	gardenClient client.Client
	live         client.Reader
	// concerns tells whether an object is guarded. Nil means all are.
	concerns func(T) bool
	// selector finds the installations of an object.
	selector func(T) client.MatchingFields
}

// pending tells whether something is to be done for an object, as far as it shows.
func (r *reconciler[T]) pending(obj T) bool {
	guarded := has(obj)
	if obj.GetDeletionTimestamp() != nil {
		return guarded
	}
	return !guarded && (r.concerns == nil || r.concerns(obj))
}

// Reconcile puts the finalizer on, or takes it off when the object is deleted and nothing is installed any more.
func (r *reconciler[T]) Reconcile(ctx context.Context, obj T) (reconcile.Result, error) {
	if !r.pending(obj) {
		return reconcile.Result{}, nil
	}
	log := logf.FromContext(ctx)
	if obj.GetDeletionTimestamp() == nil {
		log.Info("Adding finalizer")
		return kube.Result(kube.AddFinalizer(ctx, r.gardenClient, obj, constants.FinalizerControllerRegistration))
	}
	// A cache could miss an installation that was made a moment ago; deletions are rare enough to ask the server.
	installations := &corev1beta1.ControllerInstallationList{}
	if err := r.live.List(ctx, installations, r.selector(obj), client.Limit(1)); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ControllerInstallations: %w", err)
	}
	if len(installations.Items) > 0 {
		log.Info("Waiting for installations to go", "controllerInstallation", installations.Items[0].Name)
		return reconcile.Result{}, nil
	}
	log.Info("Removing finalizer")
	return kube.Result(kube.RemoveFinalizer(ctx, r.gardenClient, obj, constants.FinalizerControllerRegistration))
}

func has(obj client.Object) bool {
	return slices.Contains(obj.GetFinalizers(), constants.FinalizerControllerRegistration)
}
