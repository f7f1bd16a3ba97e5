// Package care reports whether the extensions in a seed are installed and healthy.
//
// It reads the ManagedResources of extensions in the seed, and writes the conditions Installed, Healthy and Progressing of
// ControllerInstallations in the garden. Source: concepts.txt, gardenlet, ControllerInstallation Controller, "Care" reconciler.
package care

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/gardenlet/controllerinstallation/installation"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/managedresource"
)

// Values are what the controller works with.
type Values struct {
	// Garden is the cluster with the ControllerInstallations.
	Garden cluster.Cluster
	// SyncPeriod is how often each is checked, also without events.
	SyncPeriod time.Duration
	// ConcurrentSyncs is how many are reconciled at once.
	ConcurrentSyncs int
	// Clock is for the conditions.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	toInstallation := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if name := obj.GetLabels()[installation.Label]; name != "" {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
		}
		return nil
	})
	return builder.ControllerManagedBy(mgr).Named("controllerinstallation-care").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.TypedEnqueueRequestForObject[*corev1beta1.ControllerInstallation]{},
			predicate.TypedFuncs[*corev1beta1.ControllerInstallation]{
				UpdateFunc: func(event.TypedUpdateEvent[*corev1beta1.ControllerInstallation]) bool { return false }, // the conditions depend on the ManagedResource
			})).
		Watches(&resourcesv1alpha1.ManagedResource{}, toInstallation).
		Complete(&reconciler{Values: v, gardenCache: v.Garden.GetClient(), seedCache: mgr.GetClient()})
}

type reconciler struct {
	Values
	gardenCache, seedCache client.Client
}

// Reconcile writes the conditions.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ci := &corev1beta1.ControllerInstallation{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, ci); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ci.DeletionTimestamp != nil || ci.Spec.DeploymentRef == nil {
		return reconcile.Result{}, nil
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	err := r.seedCache.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: ci.Name}, mr)
	if apierrors.IsNotFound(err) {
		mr = nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("read ManagedResource %q: %w", ci.Name, err)
	}
	after, differs := ci.DeepCopy(), false
	for _, condition := range decide(mr) {
		var changed bool
		after.Status.Conditions, changed = kube.SetCondition(after.Status.Conditions, condition, r.Clock.Now())
		differs = differs || changed
	}
	if differs {
		if err := r.gardenCache.Status().Patch(ctx, after, client.StrategicMergeFrom(ci)); err != nil {
			return kube.Result(fmt.Errorf("patch status: %w", err))
		}
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

// decide returns the conditions of an extension. Without a ManagedResource there are none: the extension is installed without a chart, or the
// main reconciler has not created it yet.
func decide(mr *resourcesv1alpha1.ManagedResource) []corev1beta1.Condition {
	if mr == nil {
		return nil
	}
	mr = withoutValues(mr)
	const yes, no = corev1beta1.ConditionTrue, corev1beta1.ConditionFalse
	return []corev1beta1.Condition{
		condition(corev1beta1.ControllerInstallationInstalled, managedresource.Applied(mr),
			state{yes, "InstallationSuccessful", "The objects of the extension are applied."}, state{no, "InstallationPending", ""}),
		condition(corev1beta1.ControllerInstallationHealthy, managedresource.Healthy(mr),
			state{yes, "ControllerHealthy", "The extension is healthy."}, state{no, "ControllerNotHealthy", ""}),
		condition(corev1beta1.ControllerInstallationProgressing, managedresource.RolledOut(mr),
			state{no, "ControllerRolledOut", "The extension is rolled out."}, state{yes, "ControllerNotRolledOut", ""}),
	}
}

// withoutValues withholds what API servers say about objects with data of Secrets: they quote fields that they refuse.
func withoutValues(mr *resourcesv1alpha1.ManagedResource) *resourcesv1alpha1.ManagedResource {
	if mr.Annotations[installation.AnnotationSecretData] != "true" {
		return mr
	}
	mr = mr.DeepCopy()
	if applied := kube.Condition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied); applied != nil {
		applied.Message = chart.Withheld
	}
	return mr
}

// state is status, reason and message of a condition.
type state struct {
	status          corev1beta1.ConditionStatus
	reason, message string
}

// condition returns the condition in the first state without a problem, and else in the second one, with the problem as its message.
func condition(typ corev1beta1.ConditionType, problem error, without, with state) corev1beta1.Condition {
	if problem != nil {
		without = state{with.status, with.reason, problem.Error()}
	}
	return corev1beta1.Condition{Type: typ, Status: without.status, Reason: without.reason, Message: without.message}
}
