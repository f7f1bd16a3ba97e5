// Package hostspread lets workloads be admitted again when their cluster gets a second node, or is left with one.
//
// Workloads with the annotation high-availability-config.resources.gardener.cloud/host-spread have their pods on different nodes. On the only node of a
// cluster, they would wait for ever, so the webhook high-availability-config does not insist on it there. This controller reads the metadata of Nodes,
// Deployments and StatefulSets of the target cluster, and patches such workloads without a change, so that the webhook sees them.
package hostspread

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout limits a reconciliation, which may have to patch some workloads.
const passTimeout = time.Minute

// Add adds the controller to a manager.
func Add(mgr manager.Manager, targetCluster cluster.Cluster) error {
	r := &reconciler{target: targetCluster.GetClient(), targetAPI: targetCluster.GetAPIReader()}
	c, err := controller.New("node-high-availability-config", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	// One reconciliation is for all Nodes, when their number changes.
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	return c.Watch(source.Kind[client.Object](targetCluster.GetCache(), kube.Metadata(corev1.SchemeGroupVersion.WithKind("Node")), all,
		predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}))
}

// Single says whether a cluster has one node, or none yet.
func Single(ctx context.Context, nodes client.Reader) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := nodes.List(ctx, list); err != nil {
		return false, fmt.Errorf("list Nodes: %w", err)
	}
	return len(list.Items) <= 1, nil
}

type reconciler struct {
	// target reads the metadata of Nodes from the cache that the webhook uses, too.
	target    client.Client
	targetAPI client.Reader
	// admitted says whether there was one node when all workloads were admitted last. Nil after the start.
	admitted *bool
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	single, err := Single(ctx, r.target)
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.admitted != nil && *r.admitted == single {
		return reconcile.Result{}, nil
	}
	var errs []error
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		errs = append(errs, r.admit(ctx, appsv1.SchemeGroupVersion.WithKind(kind)))
	}
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, err
	}
	r.admitted = &single
	return reconcile.Result{}, nil
}

// admit lets all workloads of a kind be admitted that have the annotation.
func (r *reconciler) admit(ctx context.Context, kind schema.GroupVersionKind) error {
	workloads := &metav1.PartialObjectMetadataList{}
	workloads.SetGroupVersionKind(kind)
	if err := r.targetAPI.List(ctx, workloads); err != nil {
		return fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	var errs []error
	for i := range workloads.Items {
		workload := &workloads.Items[i]
		if workload.Annotations[resourcesv1alpha1.HighAvailabilityConfigHostSpread] != "true" {
			continue
		}
		logf.FromContext(ctx).Info("Letting the webhook see a workload, as the number of nodes has changed", "kind", kind.Kind, "workload", client.ObjectKeyFromObject(workload))
		workload.SetGroupVersionKind(kind)
		if err := r.target.Patch(ctx, workload, client.RawPatch(types.MergePatchType, []byte(`{}`))); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("patch %s %s: %w", kind.Kind, client.ObjectKeyFromObject(workload), err))
		}
	}
	return errors.Join(errs...)
}
