// Package care says how healthy the control planes of a seed are.
//
// It reads Shoots in the garden; in the seed, what belongs to their control planes; and it asks the API servers of the shoots. It writes
// the conditions and constraints in the status of Shoots, deletes pods of control planes and system components that are stuck, and, if
// it is configured to, changes webhooks in shoots that are in the way of operations. Source: concepts.txt, gardenlet, Shoot Controller,
// "Care" Reconciler.
package care

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
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

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

const (
	name = "shoot-care"
	// passTimeout is the end of one look. All it waits for is an answer of an API server.
	passTimeout = time.Minute
	// probeTimeout is for how long an API server may take to say how it is, and readTimeout for how long to answer everything else.
	probeTimeout, readTimeout = 15 * time.Second, 30 * time.Second
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is where the Shoots are.
	Garden cluster.Cluster
	// SeedReader reads what is in no cache of the seed: Secrets, Leases and machines.
	SeedReader client.Reader
	// Connect returns an access to the shoot of a kubeconfig.
	Connect func(kubeconfig []byte) (Access, error)
	// Config has periods and thresholds, complete.
	Config gardenletconfigv1alpha1.ShootCareControllerConfiguration
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenClient: v.Garden.GetClient(), seedClient: mgr.GetClient(), shoots: connections{connect: v.Connect}}
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: *v.Config.ConcurrentSyncs, ReconciliationTimeout: passTimeout}).
		// The end of an operation changes what is to be expected. Conditions are our own.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Shoot{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Shoot]{},
			predicate.TypedFuncs[*corev1beta1.Shoot]{
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Shoot]) bool {
					return state(e.ObjectOld) != state(e.ObjectNew)
				},
			})).
		// What a control plane is made of. That it is well, or not, is in the status of these.
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.shootOf), builder.WithPredicates(healthChanged())).
		Watches(&druidv1alpha1.Etcd{}, handler.EnqueueRequestsFromMapFunc(r.shootOf), builder.WithPredicates(healthChanged())).
		Watches(&resourcesv1alpha1.ManagedResource{}, handler.EnqueueRequestsFromMapFunc(r.shootOf)).
		Complete(r)
}

// state is how the last operation on a shoot ended, or that it goes on.
func state(shoot *corev1beta1.Shoot) corev1beta1.LastOperationState {
	if last := shoot.Status.LastOperation; last != nil {
		return last.State
	}
	return ""
}

// healthChanged leaves out changes that make nothing better or worse.
func healthChanged() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return fmt.Sprint(healthOf(e.ObjectOld)) != fmt.Sprint(healthOf(e.ObjectNew))
	}}
}

// healthOf returns why a part of a control plane is not healthy, or nil if it is.
func healthOf(object client.Object) error {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return kube.DeploymentHealthy(o)
	case *druidv1alpha1.Etcd:
		if o.Status.Ready == nil || !*o.Status.Ready {
			return fmt.Errorf("Etcd %q: %d of %d members are ready", o.Name, o.Status.ReadyReplicas, o.Spec.Replicas)
		}
		for _, c := range o.Status.Conditions {
			if c.Type == druidv1alpha1.ConditionTypeBackupReady && c.Status == druidv1alpha1.ConditionFalse {
				return fmt.Errorf("Etcd %q: backups: %s", o.Name, c.Message)
			}
		}
	}
	return nil
}

type reconciler struct {
	Values
	gardenClient, seedClient client.Client
	shoots                   connections
}

// shootOf finds the Shoot whose control plane an object belongs to.
func (r *reconciler) shootOf(ctx context.Context, object client.Object) []reconcile.Request {
	shoots := &corev1beta1.ShootList{}
	if err := r.gardenClient.List(ctx, shoots, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the next look sees it
	}
	index := slices.IndexFunc(shoots.Items, func(s corev1beta1.Shoot) bool { return s.Status.TechnicalID == object.GetNamespace() })
	if index < 0 {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(&shoots.Items[index])}}
}

// Reconcile looks at one control plane.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenClient.Get(ctx, req.NamespacedName, shoot); err != nil {
		if apierrors.IsNotFound(err) {
			r.shoots.drop(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if shoot.Status.TechnicalID == "" || shoot.Status.SeedName == nil || *shoot.Status.SeedName != r.SeedName {
		r.shoots.drop(req.NamespacedName)
		return reconcile.Result{}, nil // nothing is here
	}
	seen, err := r.look(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = errors.Join(r.report(ctx, shoot, seen), r.collect(ctx, shoot.Status.TechnicalID), r.tidyShoot(ctx, seen))
	if err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: r.Config.SyncPeriod.Duration}, nil
}

// report writes what differs. A shoot that is being deleted loses its parts one by one, which nobody needs to hear.
func (r *reconciler) report(ctx context.Context, shoot *corev1beta1.Shoot, seen *observation) error {
	if shoot.DeletionTimestamp != nil && state(shoot) == corev1beta1.LastOperationStateProcessing {
		return nil
	}
	now, after, limits := r.Clock.Now(), shoot.DeepCopy(), limitsOf(r.Config)
	for _, want := range judge(shoot, seen, limits, now) {
		want = tolerate(kube.Condition(shoot.Status.Conditions, want.Type), want, r.threshold(want.Type), now)
		after.Status.Conditions, _ = kube.SetCondition(after.Status.Conditions, pardon(shoot, want), now)
	}
	if len(shoot.Spec.Provider.Workers) == 0 { // what cannot be there is not spoken of
		after.Status.Conditions = slices.DeleteFunc(after.Status.Conditions, func(c corev1beta1.Condition) bool { return c.Type == corev1beta1.ShootEveryNodeReady })
	}
	after.Status.Constraints = constrain(shoot.Status.Constraints, constraints(shoot, seen, now), now)
	if apiequality.Semantic.DeepEqual(shoot.Status, after.Status) {
		return nil
	}
	if err := r.gardenClient.Status().Patch(ctx, after, client.StrategicMergeFrom(shoot)); err != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}

func (r *reconciler) threshold(typ corev1beta1.ConditionType) time.Duration {
	for _, t := range r.Config.ConditionThresholds {
		if t.Type == string(typ) {
			return t.Duration.Duration
		}
	}
	return 0
}

// collect deletes pods that are in the way: they ended because a node had no room for them, or do not end.
func (r *reconciler) collect(ctx context.Context, namespace string) error {
	pods := &corev1.PodList{}
	if err := r.seedClient.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var errs []error
	for i := range pods.Items {
		if stale(&pods.Items[i], r.Clock.Now()) {
			pod := &pods.Items[i] // another one may have its name by now
			errs = append(errs, client.IgnoreNotFound(r.seedClient.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})))
		}
	}
	return errors.Join(errs...)
}
