// Package care says whether the components that Gardener runs in a seed are healthy.
//
// It reads ManagedResources in the seed, and the components that the gardenlet deploys without one, and writes the condition
// SeedSystemComponentsHealthy of the Seed. While an operator has stopped the work on shoots, it says so in the condition
// EmergencyStopShootReconciliations. Source: concepts.txt, gardenlet, Seed Controller, "Care" reconciler.
package care

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/managedresource"
	"gardener.cloud/gardener/internal/kube"
)

// namespaces are where the components of a seed are.
var namespaces = []string{constants.GardenNamespace, constants.IstioSystemNamespace}

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is where the Seed is.
	Garden cluster.Cluster
	// Components are objects in a seed that must be healthy besides: names and kinds are enough.
	Components func(*corev1beta1.Seed) []client.Object
	// SeedReader reads them. Only Deployments are watched; a look at all of them comes with each period.
	SeedReader client.Reader
	// Config has the periods, complete.
	Config gardenletconfigv1alpha1.SeedCareControllerConfiguration
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	var threshold time.Duration
	for _, t := range v.Config.ConditionThresholds {
		if t.Type == string(corev1beta1.SeedSystemComponentsHealthy) {
			threshold = t.Duration.Duration
		}
	}
	toSeed := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: v.SeedName}}}
	})
	return builder.ControllerManagedBy(mgr).Named("seed-care").
		// Once for each Seed, then again and again: thresholds pass without anything happening.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Seed{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Seed]{},
			predicate.TypedFuncs[*corev1beta1.Seed]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Seed]) bool {
				return Stopped(e.ObjectOld) != Stopped(e.ObjectNew)
			}})).
		// What else changes of them, such as a message, is in their conditions too.
		Watches(&resourcesv1alpha1.ManagedResource{}, toSeed, builder.WithPredicates(predicate.NewPredicateFuncs(counts))).
		Watches(&appsv1.Deployment{}, toSeed, builder.WithPredicates(predicate.NewPredicateFuncs(component(v.Components)))).
		Complete(&reconciler{
			gardenClient: v.Garden.GetClient(), seedClient: mgr.GetClient(), seedReader: v.SeedReader, clock: v.Clock,
			components: v.Components, period: v.Config.SyncPeriod.Duration, threshold: threshold,
		})
}

// counts tells whether a ManagedResource is a component of the seed.
func counts(obj client.Object) bool {
	mr := obj.(*resourcesv1alpha1.ManagedResource) //nolint:forcetypeassert // the kind that is watched
	return mr.Spec.Class != nil && slices.Contains(namespaces, mr.Namespace)
}

// component returns whether a Deployment is one of those that a seed with everything has.
func component(components func(*corev1beta1.Seed) []client.Object) func(client.Object) bool {
	all := components(&corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Settings: &corev1beta1.SeedSettings{
		VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true},
	}}})
	return func(obj client.Object) bool {
		return slices.ContainsFunc(all, func(c client.Object) bool {
			_, deployment := c.(*appsv1.Deployment)
			return deployment && client.ObjectKeyFromObject(c) == client.ObjectKeyFromObject(obj)
		})
	}
}

type reconciler struct {
	gardenClient, seedClient client.Client
	seedReader               client.Reader
	clock                    clock.PassiveClock
	components               func(*corev1beta1.Seed) []client.Object
	period, threshold        time.Duration
}

// Reconcile sets the condition.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.gardenClient.Get(ctx, req.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	problems, err := r.unhealthy(ctx, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	var components []resourcesv1alpha1.ManagedResource
	for _, namespace := range namespaces {
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := r.seedClient.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return reconcile.Result{}, fmt.Errorf("list ManagedResources: %w", err)
		}
		components = append(components, list.Items...)
	}
	now := r.clock.Now()
	want := decide(kube.Condition(seed.Status.Conditions, corev1beta1.SeedSystemComponentsHealthy), components, problems, now, r.threshold)
	conditions, changed := kube.SetCondition(seed.Status.Conditions, want, now)
	conditions, stopChanged := withStop(conditions, Stopped(seed), now)
	if changed || stopChanged {
		after := seed.DeepCopy()
		after.Status.Conditions = conditions
		if err := r.gardenClient.Status().Patch(ctx, after, client.StrategicMergeFrom(seed)); err != nil {
			return kube.Result(fmt.Errorf("patch status: %w", err))
		}
	}
	return reconcile.Result{RequeueAfter: r.period}, nil
}

// Stopped is whether an operator wants that nothing is done to the shoots of a seed.
func Stopped(seed *corev1beta1.Seed) bool {
	stopped, _ := strconv.ParseBool(seed.Annotations[constants.EmergencyStopShootReconciliations]) // what is no answer is a no
	return stopped
}

// withStop returns the conditions with that about the stop, which is there as long as it lasts, and whether that is a change.
func withStop(conditions []corev1beta1.Condition, stopped bool, now time.Time) ([]corev1beta1.Condition, bool) {
	if stopped {
		return kube.SetCondition(conditions, corev1beta1.Condition{
			Type: corev1beta1.SeedEmergencyStopShootReconciliations, Status: corev1beta1.ConditionTrue, Reason: "EmergencyStop",
			Message: "Nothing is done to shoots until the annotation " + constants.EmergencyStopShootReconciliations + " is taken off.",
		}, now)
	}
	without := slices.DeleteFunc(slices.Clone(conditions), func(c corev1beta1.Condition) bool {
		return c.Type == corev1beta1.SeedEmergencyStopShootReconciliations
	})
	return without, len(without) != len(conditions)
}

// unhealthy says what is wrong with the components that no ManagedResource holds.
func (r *reconciler) unhealthy(ctx context.Context, seed *corev1beta1.Seed) (problems []string, err error) {
	for _, object := range r.components(seed) {
		gvk, err := apiutil.GVKForObject(object, r.seedClient.Scheme())
		if err != nil {
			return nil, err
		}
		key := client.ObjectKeyFromObject(object)
		problem := func(err error) { problems = append(problems, fmt.Sprintf("%s %s: %s", gvk.Kind, key, err)) }
		if err := r.seedReader.Get(ctx, key, object); apierrors.IsNotFound(err) {
			problem(errors.New("it is not there"))
		} else if err != nil {
			return nil, fmt.Errorf("read %s %q: %w", gvk.Kind, key, err)
		} else if err := kube.Healthy(object); err != nil {
			problem(err)
		} else if err := kube.RolledOut(object); err != nil {
			problem(err)
		}
	}
	return problems, nil
}

// decide returns the condition for the components of a seed, of which problems are known besides. What was healthy may be unhealthy for a
// while before it is called so.
func decide(
	before *corev1beta1.Condition, components []resourcesv1alpha1.ManagedResource, problems []string, now time.Time, threshold time.Duration,
) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.SeedSystemComponentsHealthy, Status: corev1beta1.ConditionTrue,
		Reason: "SystemComponentsRunning", Message: "All system components are healthy.",
	}
	for i := range components {
		mr := &components[i]
		if !counts(mr) {
			continue
		}
		for _, check := range []func(*resourcesv1alpha1.ManagedResource) error{managedresource.Applied, managedresource.Healthy, managedresource.RolledOut} {
			if err := check(mr); err != nil {
				problems = append(problems, err.Error())
				break
			}
		}
	}
	if len(problems) == 0 {
		return condition
	}
	slices.Sort(problems)
	condition.Status, condition.Reason, condition.Message = corev1beta1.ConditionFalse, "SystemComponentsNotHealthy", strings.Join(problems, "; ")
	if threshold > 0 && before != nil {
		patient := before.Status == corev1beta1.ConditionTrue ||
			before.Status == corev1beta1.ConditionProgressing && now.Sub(before.LastUpdateTime.Time) <= threshold
		if patient {
			condition.Status = corev1beta1.ConditionProgressing
		}
	}
	return condition
}
