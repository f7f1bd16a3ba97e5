// Package care reports whether extensions are healthy.
//
// It reads ManagedResources in the runtime cluster and ControllerInstallations in the virtual garden, and writes the conditions
// ControllerInstallationsHealthy, RuntimeHealthy and AdmissionHealthy of Extensions: only of those parts that an Extension has.
package care

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
)

// virtualTimeout is how long a pass waits for the virtual garden: what is in the runtime cluster is reported without it.
const virtualTimeout = 10 * time.Second

// Values are what the controller works with.
type Values struct {
	// Virtual is the virtual garden.
	Virtual cluster.Cluster
	// Config has the period and the thresholds. It is defaulted.
	Config operatorconfigv1alpha1.ExtensionCareControllerConfiguration
	// Clock is for thresholds and the conditions.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the runtime cluster. It may be added again for another virtual garden, when the first
// one is deleted.
func Add(mgr manager.Manager, v Values) error {
	managedResources, err := kube.WhenServed(mgr, extension.ManagedResourceDefinition, source.Kind(mgr.GetCache(), &resourcesv1alpha1.ManagedResource{},
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, mr *resourcesv1alpha1.ManagedResource) []reconcile.Request {
			return extension.Requests(mr)
		})))
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("extension-care").
		WithOptions(controller.Options{MaxConcurrentReconciles: *v.Config.ConcurrentSyncs, SkipNameValidation: new(true)}).
		// Which conditions there are depends on the spec and on whether the garden requires the extension. Reconcile requeues itself, as thresholds
		// pass without an event.
		For(&operatorv1alpha1.Extension{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*operatorv1alpha1.Extension), e.ObjectNew.(*operatorv1alpha1.Extension) //nolint:forcetypeassert // the kind that is watched
			return before.Generation != after.Generation || required(before) != required(after) || installed(before) != installed(after)
		}})).
		WatchesRawSource(managedResources).
		WatchesRawSource(kube.InBackground(source.Kind(v.Virtual.GetCache(), &corev1beta1.ControllerInstallation{},
			handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, installation *corev1beta1.ControllerInstallation) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: installation.Spec.RegistrationRef.Name}}}
			})))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{
			runtimeCache: mgr.GetClient(), virtualCache: v.Virtual.GetClient(), clock: v.Clock, period: v.Config.SyncPeriod.Duration,
			thresholds: v.Config.ConditionThresholds,
		}))
}

func required(e *operatorv1alpha1.Extension) bool {
	return extension.Is(e, operatorv1alpha1.ExtensionRequiredRuntime, corev1beta1.ConditionTrue)
}

func installed(e *operatorv1alpha1.Extension) bool {
	return extension.Is(e, operatorv1alpha1.ExtensionInstalled, corev1beta1.ConditionTrue)
}

type reconciler struct {
	runtimeCache client.Client
	virtualCache client.Reader
	clock        clock.PassiveClock
	period       time.Duration
	thresholds   []operatorconfigv1alpha1.ConditionThreshold
}

// Reconcile writes the conditions.
func (r *reconciler) Reconcile(ctx context.Context, e *operatorv1alpha1.Extension) (reconcile.Result, error) {
	if e.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	list := &resourcesv1alpha1.ManagedResourceList{}
	err := r.runtimeCache.List(ctx, list, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{operatorv1alpha1.LabelExtensionName: e.Name})
	if err != nil && !meta.IsNoMatchError(err) {
		return reconcile.Result{}, fmt.Errorf("list ManagedResources: %w", err)
	}
	installations := &corev1beta1.ControllerInstallationList{}
	virtualErr := r.listInstallations(ctx, installations)
	if ctx.Err() != nil {
		return reconcile.Result{}, virtualErr
	}
	now, again := r.clock.Now(), r.period
	status := decide(e, list.Items, installations.Items)
	if virtualErr != nil {
		logf.FromContext(ctx).Info("Not reporting the health of ControllerInstallations, as the virtual garden does not respond", "reason", virtualErr.Error())
		status = withoutInstallations(status)
	}
	for i := range status.Conditions {
		if left := r.soften(e, &status.Conditions[i], now); left > 0 {
			again = min(again, left)
		}
	}
	if err := extension.Write(ctx, r.runtimeCache, e, now, status); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// listInstallations lists all ControllerInstallations. A process that starts while the virtual garden is down has none in its cache, and would wait for it.
func (r *reconciler) listInstallations(ctx context.Context, list *corev1beta1.ControllerInstallationList) error {
	ctx, cancel := context.WithTimeout(ctx, virtualTimeout)
	defer cancel()
	if err := r.virtualCache.List(ctx, list); err != nil {
		return fmt.Errorf("list ControllerInstallations: %w", err)
	}
	return nil
}

// soften turns a condition that would be False to Progressing, if it was True not longer ago than its threshold. It returns when to check again.
func (r *reconciler) soften(e *operatorv1alpha1.Extension, condition *corev1beta1.Condition, now time.Time) time.Duration {
	var threshold time.Duration
	for _, t := range r.thresholds {
		if t.Type == string(condition.Type) {
			threshold = t.Duration.Duration
		}
	}
	return kube.Soften(kube.Condition(e.Status.Conditions, condition.Type), condition, threshold, now)
}
