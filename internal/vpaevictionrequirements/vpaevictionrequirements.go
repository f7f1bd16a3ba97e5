// Package vpaevictionrequirements restricts when pods may be evicted to lower their resource requests: never, or only in the maintenance time
// window of their shoot.
//
// It reads and writes labelled VerticalPodAutoscalers of the seed. Source: concepts.txt, gardenlet, "VPAEvictionRequirements Controller".
package vpaevictionrequirements

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/maintenance"
)

// Values are what the controller works with.
type Values struct {
	// SeedAPI is the API server of the seed. Only the metadata of VerticalPodAutoscalers is in a cache: recommendations change every minute.
	SeedAPI client.Client
	// ConcurrentSyncs is how many VerticalPodAutoscalers are reconciled at once.
	ConcurrentSyncs int
	// Clock is for maintenance time windows.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed. The CRD must exist.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("vpa-eviction-requirements").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(kube.Metadata(workload.AutoscalerKind), builder.WithPredicates(
			predicate.NewPredicateFuncs(responsible),
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}),
		)).
		Complete(&reconciler{v})
}

// responsible is whether the eviction requirements of a VerticalPodAutoscaler are managed by this controller.
func responsible(vpa client.Object) bool {
	return vpa.GetLabels()[constants.VPAEvictionRequirements] == constants.EvictionRequirementManagedByController
}

type reconciler struct {
	Values
}

// Reconcile writes the eviction requirements, and requeues for the time when the window opens or closes.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	vpa := &unstructured.Unstructured{}
	vpa.SetGroupVersionKind(workload.AutoscalerKind)
	if err := r.SeedAPI.Get(ctx, req.NamespacedName, vpa); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !responsible(vpa) {
		return reconcile.Result{}, nil
	}
	upwards, requeueAfter, err := decide(vpa.GetAnnotations(), r.Clock.Now())
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err) // only a change of the annotations helps, which triggers the watch
	}
	after := vpa.DeepCopy()
	path := []string{"spec", "updatePolicy", "evictionRequirements"}
	if upwards {
		if err := unstructured.SetNestedSlice(after.Object, upwardsOnly(), path...); err != nil {
			return reconcile.Result{}, reconcile.TerminalError(err)
		}
	} else {
		unstructured.RemoveNestedField(after.Object, path...)
	}
	if !apiequality.Semantic.DeepEqual(vpa.Object, after.Object) {
		if err := r.SeedAPI.Patch(ctx, after, client.MergeFrom(vpa)); err != nil {
			return kube.Result(client.IgnoreNotFound(err))
		}
	}
	return reconcile.Result{RequeueAfter: requeueAfter}, nil
}

// upwardsOnly are requirements that allow evictions only if a request grows.
func upwardsOnly() []any {
	return []any{map[string]any{
		"resources":         []any{string(corev1.ResourceCPU), string(corev1.ResourceMemory)},
		"changeRequirement": "TargetHigherThanRequests",
	}}
}

// decide returns whether pods may be evicted only to raise requests, and when to decide again.
func decide(annotations map[string]string, now time.Time) (upwards bool, requeueAfter time.Duration, err error) {
	switch when := annotations[constants.VPAEvictionRequirementDownscaleRestriction]; when {
	case constants.EvictionRequirementNever:
		return true, 0, nil
	case constants.EvictionRequirementInMaintenanceWindowOnly:
		begin, end, ok := strings.Cut(annotations[constants.ShootMaintenanceWindow], ",")
		if !ok {
			return false, 0, fmt.Errorf("annotation %s must have begin and end of the window, such as 220000+0100,230000+0100", constants.ShootMaintenanceWindow)
		}
		opens, closes, err := maintenance.Next(corev1beta1.MaintenanceTimeWindow{Begin: begin, End: end}, now)
		if err != nil {
			return false, 0, fmt.Errorf("annotation %s: %w", constants.ShootMaintenanceWindow, err)
		}
		if opens.After(now) {
			return true, opens.Sub(now), nil
		}
		return false, closes.Sub(now), nil
	default:
		return false, 0, fmt.Errorf("annotation %s must be %s or %s", constants.VPAEvictionRequirementDownscaleRestriction,
			constants.EvictionRequirementNever, constants.EvictionRequirementInMaintenanceWindowOnly)
	}
}
