// Package agentdelay distributes over time when the gardener-node-agents of a cluster apply a new configuration.
//
// It reads the metadata of the Nodes of the target cluster and annotates them.
// Source: concepts.txt, Gardener Resource Manager, "Node Agent Reconciliation Delay Controller".
package agentdelay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout limits a reconciliation, which may have to annotate every Node.
const passTimeout = 3 * time.Minute

var nodeKind = corev1.SchemeGroupVersion.WithKind("Node")

// Add adds the controller to a manager. Delays are between the given ones.
func Add(mgr manager.Manager, targetCluster cluster.Cluster, shortest, longest time.Duration) error {
	r := &reconciler{client: targetCluster.GetClient(), shortest: shortest, longest: longest}
	c, err := controller.New("node-agent-reconciliation-delay", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	// One reconciliation is for all Nodes. It is necessary when their number changes, or when an annotation is removed.
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	return c.Watch(source.Kind[client.Object](targetCluster.GetCache(), kube.Metadata(nodeKind), all, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[constants.NodeAgentReconciliationDelay] != e.ObjectNew.GetAnnotations()[constants.NodeAgentReconciliationDelay]
	}}))
}

// reconciler annotates all Nodes.
type reconciler struct {
	client            client.Client
	shortest, longest time.Duration
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	nodes := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "NodeList"}}
	if err := r.client.List(ctx, nodes); err != nil {
		return reconcile.Result{}, err
	}
	// The oldest first: a new Node changes little for the others.
	slices.SortFunc(nodes.Items, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var errs []error
	for i := range nodes.Items {
		node := &nodes.Items[i]
		node.SetGroupVersionKind(nodeKind)
		want := delay(i, len(nodes.Items), r.shortest, r.longest).String()
		errs = append(errs, client.IgnoreNotFound(kube.PatchMetadata(ctx, r.client, node, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.NodeAgentReconciliationDelay, want)
		})))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// delay is the delay of one of several Nodes, in whole seconds, evenly distributed between the shortest and the longest.
func delay(index, count int, shortest, longest time.Duration) time.Duration {
	return (shortest + (longest-shortest)*time.Duration(index)/time.Duration(count)).Truncate(time.Second)
}
