// Package registrar says which controllers of the gardener-operator run: some only while there is a Garden, some only while there is access to its
// virtual cluster.
//
// It reads the Garden, the Secret with the kubeconfig of the virtual cluster, and which CustomResourceDefinitions are established, all in the
// runtime cluster. It writes nothing. Source: concepts.txt, gardener-operator, "Controller Registrar Controller".
package registrar

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/group"
	"gardener.cloud/gardener/internal/operator/virtualcluster"
)

// Values are what the controller works with.
type Values struct {
	// NewManager returns a manager for a group of controllers in the runtime cluster, with a cache of its own.
	NewManager func(ctx context.Context, name string) (manager.Manager, error)
	// NewVirtual returns the virtual cluster for a configuration.
	NewVirtual func(ctx context.Context, config *rest.Config) (cluster.Cluster, error)
	// Connection changes the configuration of the connection to the virtual cluster. It may be nil.
	Connection func(*rest.Config)

	// AddGarden adds the controllers that run while there is a Garden.
	AddGarden func(ctx context.Context, mgr manager.Manager) error
	// AddResources adds the controllers that run while there is a Garden and the Definitions are established, as they watch their kinds.
	AddResources func(ctx context.Context, mgr manager.Manager) error
	// Definitions are names of CustomResourceDefinitions.
	Definitions []string
	// AddVirtual adds the controllers that run while there is a Garden and access to its virtual cluster.
	AddVirtual func(ctx context.Context, mgr manager.Manager, virtual cluster.Cluster) error

	// Garden, Resources and Virtual are the groups for these controllers.
	Garden, Resources, Virtual *group.Group
}

// Add adds the controller and its groups to a manager, whose cluster is the runtime cluster.
func Add(mgr manager.Manager, v Values) error {
	for _, g := range []*group.Group{v.Garden, v.Resources, v.Virtual} {
		if err := mgr.Add(g); err != nil {
			return err
		}
	}
	// There is one request: what runs depends on all of these objects together.
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	return builder.ControllerManagedBy(mgr).Named("controller-registrar").
		// Only whether there is one matters.
		Watches(&operatorv1alpha1.Garden{}, toAll, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		Watches(&corev1.Secret{}, toAll, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return client.ObjectKeyFromObject(obj) == virtualcluster.SecretKey
		}))).
		Watches(&apiextensionsv1.CustomResourceDefinition{}, toAll, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return established(e.ObjectOld) != established(e.ObjectNew)
		}})).
		Complete(&reconciler{Values: v, runtimeCache: mgr.GetCache()})
}

func established(definition client.Object) bool {
	return kube.Healthy(definition) == nil && definition.GetDeletionTimestamp() == nil
}
