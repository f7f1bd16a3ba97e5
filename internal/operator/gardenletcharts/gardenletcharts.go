// Package gardenletcharts gives Gardenlets that follow gardener-operator the chart of its release, in waves.
//
// It reads the Garden in the runtime cluster, and Seeds, Gardenlets, ManagedSeeds and the metadata of Shoots in the virtual garden. It writes the reference
// of the chart and image vector overwrites in Gardenlets with the label operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref=true, and the
// annotation of their upgrade, and in the Garden the condition GardenletsUpdated. Source: concepts.txt, Gardener Operator, "Gardenlet Controller"; docs/operator.md.
package gardenletcharts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
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

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/wave"
)

const (
	// soak is how long seeds have to stay as healthy as they were: health that is only reported after some minutes is seen in it.
	soak = 5 * time.Minute
	// late is when a wave that has not passed is worth an event. A gardenlet is deployed, or rolled back, in less.
	late = time.Hour
	// passTimeout is the end of a pass, which lists seeds and shoots.
	passTimeout = 2 * time.Minute
)

// Values are what the controller works with.
type Values struct {
	// Virtual is the virtual garden.
	Virtual cluster.Cluster
	// VirtualAPI is the virtual garden without a cache.
	VirtualAPI client.WithWatch
	// Chart is the reference of the chart of gardenlets of this release. Empty means that it has none.
	Chart string
	// Overwrites are the image vector overwrites of the operator, for Gardenlets that do not have their own.
	Overwrites wave.Overwrites
	// Version is that of the operator, which the gardenlets report that are deployed with the chart.
	Version string
	// Clock is the source of the current time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the runtime cluster.
func Add(mgr manager.Manager, v Values) error {
	if v.Chart == "" {
		return nil
	}
	r := &reconciler{
		version: v.Version, runtimeAPI: mgr.GetAPIReader(), runtimeCache: mgr.GetClient(), recorder: mgr.GetEventRecorder("gardenlet-charts"), clock: v.Clock,
		following: &wave.Following{Client: v.VirtualAPI, Target: wave.FollowingTarget(v.Version, v.Chart, v.Overwrites), Soak: soak, Clock: v.Clock},
	}
	return builder.ControllerManagedBy(mgr).Named("gardenlet-charts").
		// The controller is added again when the virtual garden is created again.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, SkipNameValidation: new(true)}).
		Watches(&operatorv1alpha1.Garden{}, toAll[client.Object](), builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, isGarden := e.ObjectOld.(*operatorv1alpha1.Garden)
			after, areGardens := e.ObjectNew.(*operatorv1alpha1.Garden)
			return isGarden && areGardens && !reconciled(before, v.Version) && reconciled(after, v.Version)
		}})).
		// What a wave waits for, but shoots: they are read again after a minute.
		WatchesRawSource(source.Kind(v.Virtual.GetCache(), &seedmanagementv1alpha1.Gardenlet{}, toAll[*seedmanagementv1alpha1.Gardenlet](),
			predicate.TypedFuncs[*seedmanagementv1alpha1.Gardenlet]{
				UpdateFunc: func(e event.TypedUpdateEvent[*seedmanagementv1alpha1.Gardenlet]) bool {
					return e.ObjectOld.Generation != e.ObjectNew.Generation || !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) ||
						!maps.Equal(e.ObjectOld.Annotations, e.ObjectNew.Annotations) || e.ObjectOld.Status.ObservedGeneration != e.ObjectNew.Status.ObservedGeneration ||
						!same(e.ObjectOld.Status.Conditions, e.ObjectNew.Status.Conditions)
				},
			})).
		WatchesRawSource(source.Kind(v.Virtual.GetCache(), &corev1beta1.Seed{}, toAll[*corev1beta1.Seed](), predicate.TypedFuncs[*corev1beta1.Seed]{
			UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Seed]) bool {
				return !apiequality.Semantic.DeepEqual(e.ObjectOld.Status.Gardener, e.ObjectNew.Status.Gardener) ||
					e.ObjectOld.Status.ObservedGeneration != e.ObjectNew.Status.ObservedGeneration ||
					!same(e.ObjectOld.Status.Conditions, e.ObjectNew.Status.Conditions)
			},
		})).
		Complete(r)
}

// toAll maps each object to the one request that there is.
func toAll[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: constants.GardenNamespace, Name: "gardenlets"}}}
	})
}

// same says whether conditions say the same, whatever their times and messages are.
func same(before, after []corev1beta1.Condition) bool {
	return slices.EqualFunc(before, after, func(a, b corev1beta1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	})
}

type reconciler struct {
	version string
	// runtimeAPI reads the Garden without a cache, which may lack the condition of the pass before.
	runtimeAPI   client.Reader
	runtimeCache client.Client
	recorder     events.EventRecorder
	clock        clock.PassiveClock
	following    *wave.Following
	// reported is what the last event was about.
	reported string
}

// Reconcile does the next step.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	gardens := &operatorv1alpha1.GardenList{}
	if err := r.runtimeAPI.List(ctx, gardens); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Gardens: %w", err)
	}
	if len(gardens.Items) != 1 {
		return reconcile.Result{}, nil
	}
	garden := &gardens.Items[0]
	if !reconciled(garden, r.version) {
		return kube.Result(r.forget(ctx, garden)) // the watch of Gardens continues
	}
	step, err := r.following.Step(ctx)
	if err != nil {
		return kube.Result(err)
	}
	if len(step.Begun) > 0 {
		logf.FromContext(ctx).Info("Updating charts of gardenlets", "seeds", step.Begun, "version", r.version)
	}
	r.report(ctx, garden, step)
	if err := r.writeCondition(ctx, garden, step); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: step.After}, nil
}

// reconciled says whether all components of a garden have a version: no gardenlet may be newer than any of them.
func reconciled(garden *operatorv1alpha1.Garden, version string) bool {
	last := garden.Status.LastOperation
	return garden.DeletionTimestamp == nil && garden.Status.Gardener != nil && garden.Status.Gardener.Version == version &&
		garden.Status.ObservedGeneration == garden.Generation &&
		last != nil && last.Type == corev1beta1.LastOperationTypeReconcile && last.State == corev1beta1.LastOperationStateSucceeded
}

// report says with an event, once, that a wave does not pass, so that no further gardenlet is updated.
func (r *reconciler) report(ctx context.Context, garden *operatorv1alpha1.Garden, step wave.Step) {
	if !held(step, r.clock.Now()) {
		r.reported = ""
		return
	}
	seeds := slices.Sorted(maps.Keys(step.Missing))
	about := strings.Join(seeds, ", ")
	if r.reported == about {
		return
	}
	r.reported = about
	logf.FromContext(ctx).Info("Not updating charts of further gardenlets", "seed", seeds[0], "reason", step.Missing[seeds[0]].Error())
	r.recorder.Eventf(garden, nil, corev1.EventTypeWarning, operatorv1alpha1.ReasonGardenletUpdatesHeld, constants.EventActionReconcile, "%s", heldMessage(step))
}
