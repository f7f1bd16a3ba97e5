// Package care reports whether the components of Gardener in a seed are healthy.
//
// It reads ManagedResources and Extensions of the seed, and the components that the gardenlet deploys without a ManagedResource, and writes the condition
// SeedSystemComponentsHealthy of the Seed. While an operator has stopped the reconciliation of shoots, the Seed also has the condition
// EmergencyStopShootReconciliations. Source: concepts.txt, gardenlet, Seed Controller, "Care" reconciler.
package care

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/managedresource"
)

// namespaces are those with ManagedResources of seed components.
var namespaces = []string{constants.GardenNamespace, constants.IstioSystemNamespace}

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the Seed.
	Garden cluster.Cluster
	// Components returns further objects of a seed that must be healthy, with kind, namespace and name.
	Components func(*corev1beta1.Seed) []client.Object
	// SeedAPI is the API server of the seed, for these objects. Only Deployments are watched; the others are checked periodically.
	SeedAPI client.Reader
	// Config has the period and the thresholds. It is defaulted.
	Config gardenletconfigv1alpha1.SeedCareControllerConfiguration
	// Clock is for thresholds and the status.
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
		// Reconcile requeues itself, as thresholds pass without an event.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Seed{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Seed]{},
			predicate.TypedFuncs[*corev1beta1.Seed]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Seed]) bool {
				return e.ObjectOld.ShootReconciliationsStopped() != e.ObjectNew.ShootReconciliationsStopped()
			}})).
		// All updates count: the messages of their conditions are in that of the Seed.
		Watches(&resourcesv1alpha1.ManagedResource{}, toSeed, builder.WithPredicates(predicate.NewPredicateFuncs(ofSeed))).
		Watches(&extensionsv1alpha1.Extension{}, toSeed, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return extensionobject.OfSeed(obj.(*extensionsv1alpha1.Extension)) //nolint:forcetypeassert // the kind that is watched
		}))).
		Watches(&appsv1.Deployment{}, toSeed, builder.WithPredicates(predicate.NewPredicateFuncs(isComponent(v.Components)))).
		Complete(&reconciler{
			gardenCache: v.Garden.GetClient(), seedCache: mgr.GetClient(), seedAPI: v.SeedAPI, clock: v.Clock,
			components: v.Components, period: v.Config.SyncPeriod.Duration, threshold: threshold,
		})
}

// ofSeed is whether a ManagedResource is for a component of the seed.
func ofSeed(obj client.Object) bool {
	mr := obj.(*resourcesv1alpha1.ManagedResource) //nolint:forcetypeassert // the kind that is watched
	return mr.Spec.Class != nil && slices.Contains(namespaces, mr.Namespace)
}

// isComponent returns a function that checks whether a Deployment is one of the components, also of those that only some seeds have.
func isComponent(components func(*corev1beta1.Seed) []client.Object) func(client.Object) bool {
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
	gardenCache, seedCache client.Client
	seedAPI                client.Reader
	clock                  clock.PassiveClock
	components             func(*corev1beta1.Seed) []client.Object
	period, threshold      time.Duration
}

// Reconcile writes the conditions.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	problems, err := r.unhealthy(ctx, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	extensions := &extensionsv1alpha1.ExtensionList{}
	if err := r.seedCache.List(ctx, extensions, client.InNamespace(constants.GardenNamespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Extensions: %w", err)
	}
	problems = append(problems, extensionProblems(extensions.Items)...)
	var managedResources []resourcesv1alpha1.ManagedResource
	for _, namespace := range namespaces {
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := r.seedCache.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return reconcile.Result{}, fmt.Errorf("list ManagedResources: %w", err)
		}
		managedResources = append(managedResources, slices.DeleteFunc(list.Items, foreign)...)
	}
	now := r.clock.Now()
	want, again := decide(managedResources, problems), r.period
	if left := kube.Soften(kube.Condition(seed.Status.Conditions, want.Type), &want, r.threshold, now); left > 0 {
		again = min(again, left)
	}
	conditions, changed := kube.SetCondition(seed.Status.Conditions, want, now)
	conditions, stopChanged := withStop(conditions, seed.ShootReconciliationsStopped(), now)
	if changed || stopChanged {
		after := seed.DeepCopy()
		after.Status.Conditions = conditions
		if err := r.gardenCache.Status().Patch(ctx, after, client.StrategicMergeFrom(seed)); err != nil {
			return kube.Result(fmt.Errorf("patch status: %w", err))
		}
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// foreign reports whether a ManagedResource in the namespace is not about the seed. Where a garden runs in the same cluster, its components are there, too, and
// what is for its virtual cluster.
func foreign(mr resourcesv1alpha1.ManagedResource) bool {
	typ := corev1beta1.ConditionType(mr.Labels[constants.CareConditionType])
	return ptr.Deref(mr.Spec.Class, "") == "" || typ != "" && typ != corev1beta1.SeedSystemComponentsHealthy
}

// withStop returns the conditions with or without EmergencyStopShootReconciliations, and whether they have changed.
func withStop(conditions []corev1beta1.Condition, stopped bool, now time.Time) ([]corev1beta1.Condition, bool) {
	if stopped {
		return kube.SetCondition(conditions, corev1beta1.Condition{
			Type: corev1beta1.SeedEmergencyStopShootReconciliations, Status: corev1beta1.ConditionTrue, Reason: "EmergencyStop",
			Message: "Shoots are not reconciled until the annotation " + constants.EmergencyStopShootReconciliations + " is removed.",
		}, now)
	}
	without := slices.DeleteFunc(slices.Clone(conditions), func(c corev1beta1.Condition) bool {
		return c.Type == corev1beta1.SeedEmergencyStopShootReconciliations
	})
	return without, len(without) != len(conditions)
}

// unhealthy returns the problems of the components without a ManagedResource.
func (r *reconciler) unhealthy(ctx context.Context, seed *corev1beta1.Seed) ([]string, error) {
	return kube.Problems(ctx, r.seedAPI, r.seedCache.Scheme(), r.components(seed)...)
}

// extensionProblems returns the problems of the Extensions that the seed has for itself: what is not reconciled, and the health that extensions
// report for the seed.
func extensionProblems(extensions []extensionsv1alpha1.Extension) (problems []string) {
	for i := range extensions {
		e := &extensions[i]
		if !extensionobject.OfSeed(e) {
			continue
		}
		problem := func(text string) {
			problems = append(problems, fmt.Sprintf("Extension %s: %s", client.ObjectKeyFromObject(e), text))
		}
		if err := extensionobject.Judge(e).Err(); err != nil {
			problem(err.Error())
		} else if c := kube.Condition(e.Status.Conditions, corev1beta1.SeedSystemComponentsHealthy); c != nil && c.Status == corev1beta1.ConditionFalse {
			problem(c.Message)
		}
	}
	return problems
}

// decide returns the condition SeedSystemComponentsHealthy for ManagedResources, and for the problems of components without one.
func decide(managedResources []resourcesv1alpha1.ManagedResource, problems []string) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.SeedSystemComponentsHealthy, Status: corev1beta1.ConditionTrue,
		Reason: "SystemComponentsRunning", Message: "All system components are healthy.",
	}
	for i := range managedResources {
		mr := &managedResources[i]
		if !ofSeed(mr) {
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
	return condition
}
