// Package requiredvirtual reports which Extensions are required by seeds.
//
// It reads ControllerInstallations in the virtual garden, and writes the condition RequiredVirtual of Extensions in the runtime cluster: True as
// long as one of their ControllerInstallations is required.
package requiredvirtual

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
)

// Values are what the controller works with.
type Values struct {
	// Virtual is the virtual garden.
	Virtual cluster.Cluster
	// ConcurrentSyncs is how many Extensions are reconciled at the same time.
	ConcurrentSyncs int
	// Clock is for the condition.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the runtime cluster. It may be added again for another virtual garden, when the first
// one is deleted.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("extension-required-virtual").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs, SkipNameValidation: new(true)}).
		// The condition does not depend on the spec of an Extension.
		For(&operatorv1alpha1.Extension{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		WatchesRawSource(kube.InBackground(source.Kind(v.Virtual.GetCache(), &corev1beta1.ControllerInstallation{},
			handler.TypedEnqueueRequestsFromMapFunc(toExtension),
			predicate.TypedFuncs[*corev1beta1.ControllerInstallation]{
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.ControllerInstallation]) bool {
					return required(e.ObjectOld) != required(e.ObjectNew)
				},
			}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{runtimeCache: mgr.GetClient(), runtimeAPI: mgr.GetAPIReader(), virtualCache: v.Virtual.GetClient(), clock: v.Clock}))
}

// toExtension maps a ControllerInstallation to the Extension that has the name of its ControllerRegistration.
func toExtension(_ context.Context, installation *corev1beta1.ControllerInstallation) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: installation.Spec.RegistrationRef.Name}}}
}

type reconciler struct {
	runtimeCache client.Client
	runtimeAPI   client.Reader
	virtualCache client.Reader
	clock        clock.PassiveClock
}

// Reconcile writes the condition.
func (r *reconciler) Reconcile(ctx context.Context, e *operatorv1alpha1.Extension) (reconcile.Result, error) {
	installations := &corev1beta1.ControllerInstallationList{}
	if err := r.virtualCache.List(ctx, installations); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ControllerInstallations: %w", err)
	}
	// The cache may not have the condition yet that the last pass has written.
	if err := r.runtimeAPI.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return kube.Result(extension.Write(ctx, r.runtimeCache, e, r.clock.Now(), extension.Status{
		Conditions: []corev1beta1.Condition{decide(e.Name, installations.Items)},
	}))
}

func required(installation *corev1beta1.ControllerInstallation) bool {
	condition := kube.Condition(installation.Status.Conditions, corev1beta1.ControllerInstallationRequired)
	return condition != nil && condition.Status == corev1beta1.ConditionTrue
}

// decide returns the condition of the Extension of a name.
func decide(name string, installations []corev1beta1.ControllerInstallation) corev1beta1.Condition {
	var names []string
	for i := range installations {
		if installations[i].Spec.RegistrationRef.Name == name && required(&installations[i]) {
			names = append(names, installations[i].Name)
		}
	}
	if len(names) == 0 {
		return corev1beta1.Condition{
			Type: operatorv1alpha1.ExtensionRequiredVirtual, Status: corev1beta1.ConditionFalse, Reason: "NoRequiredControllerInstallation",
			Message: "No ControllerInstallation of the extension is required.",
		}
	}
	slices.Sort(names)
	return corev1beta1.Condition{
		Type: operatorv1alpha1.ExtensionRequiredVirtual, Status: corev1beta1.ConditionTrue, Reason: "RequiredControllerInstallation",
		Message: "ControllerInstallations of the extension are required: " + strings.Join(names, ", "),
	}
}

// WriteGardenDeleted writes that no Extension is required by seeds, as there is no virtual garden any more. The flow that deletes the Garden calls
// it when the virtual garden is gone.
func WriteGardenDeleted(ctx context.Context, runtimeAPI client.Client, clk clock.PassiveClock) error {
	extensions := &operatorv1alpha1.ExtensionList{}
	if err := runtimeAPI.List(ctx, extensions); err != nil {
		return fmt.Errorf("list Extensions: %w", err)
	}
	for i := range extensions.Items {
		if err := extension.Write(ctx, runtimeAPI, &extensions.Items[i], clk.Now(), extension.Status{Conditions: []corev1beta1.Condition{{
			Type: operatorv1alpha1.ExtensionRequiredVirtual, Status: corev1beta1.ConditionFalse, Reason: "GardenDeleted",
			Message: "There is no virtual garden, as the Garden is deleted.",
		}}}); err != nil {
			return err
		}
	}
	return nil
}
