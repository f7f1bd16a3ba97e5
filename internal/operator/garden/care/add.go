// Package care reports the health of the garden.
//
// It reads ManagedResources, Deployments, Etcds and the metadata of Secrets with CAs of the runtime cluster, the Service of its gateway, and /healthz of the virtual
// garden. It writes the conditions of the Garden. Nothing is reported while it is brought up for the first time, or deleted, as components come and go one by one.
// Source: concepts.txt, gardener-operator, "Care" reconciler.
package care

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
)

// passTimeout is the end of one pass, which waits for nothing but answers of API servers.
const passTimeout = time.Minute

// namespaces are those with ManagedResources of the garden.
var namespaces = []string{constants.GardenNamespace, constants.IstioSystemNamespace}

// Values are what the controller works with.
type Values struct {
	// Healthz returns why the API server of the virtual garden is not available, or nil if it is.
	Healthz func(context.Context) error
	// RuntimeAPI is the API server of the runtime cluster, for components without a ManagedResource and for CAs. Only Deployments are watched; the others are
	// checked periodically.
	RuntimeAPI client.Reader
	// Config has the period and the thresholds. It is defaulted.
	Config operatorconfigv1alpha1.GardenCareControllerConfiguration
	// Metrics are those of the Garden. They may be nil.
	Metrics *Metrics
	// Clock is for thresholds and the status.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the runtime cluster.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, runtimeCache: mgr.GetClient()}
	toGardens := handler.EnqueueRequestsFromMapFunc(r.gardens)
	inGarden := predicate.NewPredicateFuncs(func(obj client.Object) bool { return slices.Contains(namespaces, obj.GetNamespace()) })
	return builder.ControllerManagedBy(mgr).Named("garden-care").
		WithOptions(controller.Options{ReconciliationTimeout: passTimeout}).
		// The conditions are written here. Reconcile requeues itself, as thresholds pass, and the API server fails, without an event.
		For(&operatorv1alpha1.Garden{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*operatorv1alpha1.Garden), e.ObjectNew.(*operatorv1alpha1.Garden) //nolint:forcetypeassert // the kind that is watched
			return processing(before) != processing(after)
		}})).
		// All updates count: the messages of their conditions are in those of the Garden.
		Watches(&resourcesv1alpha1.ManagedResource{}, toGardens, builder.WithPredicates(inGarden)).
		Watches(&appsv1.Deployment{}, toGardens, builder.WithPredicates(predicate.NewPredicateFuncs(requiredDeployment), healthChanged())).
		Watches(&druidv1alpha1.Etcd{}, toGardens, builder.WithPredicates(inGarden, predicate.NewPredicateFuncs(requiredEtcd), healthChanged())).
		Complete(r)
}

// processing is whether an operation is in progress.
func processing(garden *operatorv1alpha1.Garden) bool {
	last := garden.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateProcessing
}

// inUse is whether a Garden was brought up before, and is not deleted.
func inUse(garden *operatorv1alpha1.Garden) bool {
	credentials := garden.Status.Credentials
	return garden.DeletionTimestamp == nil && credentials != nil && credentials.EncryptionAtRest != nil
}

// requiredDeployment is whether a Deployment has to exist, in the control plane or as a component of the runtime cluster, also of those that only some
// Gardens have.
func requiredDeployment(obj client.Object) bool {
	if obj.GetNamespace() == constants.GardenNamespace && slices.Contains(requiredDeployments, obj.GetName()) {
		return true
	}
	return slices.ContainsFunc(systemcomponents.Components(true), func(c client.Object) bool {
		_, deployment := c.(*appsv1.Deployment)
		return deployment && client.ObjectKeyFromObject(c) == client.ObjectKeyFromObject(obj)
	})
}

// requiredEtcd is whether an Etcd has to exist.
func requiredEtcd(obj client.Object) bool { return slices.Contains(requiredEtcds, obj.GetName()) }

// healthChanged drops updates of Deployments and Etcds that do not change their health.
func healthChanged() predicate.Predicate {
	health := func(object client.Object) error {
		switch o := object.(type) {
		case *appsv1.Deployment:
			return kube.DeploymentAvailable(o)
		case *druidv1alpha1.Etcd:
			return etcd.Healthy(o)
		}
		return nil
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return fmt.Sprint(health(e.ObjectOld)) != fmt.Sprint(health(e.ObjectNew))
	}}
}

// gardens returns requests for all Gardens, of which there is one.
func (r *reconciler) gardens(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &operatorv1alpha1.GardenList{}
	if err := r.runtimeCache.List(ctx, list); err != nil {
		return nil // the next periodic pass observes the change
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
