// Package garbagecollector deletes immutable ConfigMaps and Secrets that no object refers to any more.
//
// It reads the metadata of those with its label, and of workloads and ManagedResources, and deletes the former. Nothing is cached, as it
// runs rarely. Source: concepts.txt, Gardener Resource Manager, "Garbage Collector For Immutable ConfigMaps/Secrets".
package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// passTimeout limits a collection, which lists the metadata of all workloads.
	passTimeout = 3 * time.Minute
	// pageSize is how many objects are listed at once.
	pageSize = 500
	// minimumLifetime is the minimum age of objects that are deleted, as objects that refer to them may be created later.
	minimumLifetime = 10 * time.Minute
)

var (
	collected = map[string]schema.GroupVersionKind{
		references.KindConfigMap: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		references.KindSecret:    corev1.SchemeGroupVersion.WithKind("Secret"),
	}
	// referring are the kinds with references in annotations.
	referring = []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"), batchv1.SchemeGroupVersion.WithKind("Job"),
		batchv1.SchemeGroupVersion.WithKind("CronJob"), corev1.SchemeGroupVersion.WithKind("Pod"),
		resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"),
	}
)

// Values are the settings of the controller.
type Values struct {
	// SyncPeriod is the time between two collections.
	SyncPeriod time.Duration
	// Namespaces are those that it collects garbage in. None means all of them.
	Namespaces []string
}

// reconciler deletes objects that are not in use.
type reconciler struct {
	client     client.Client
	syncPeriod time.Duration
	namespaces []string
	clock      clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, targetCluster cluster.Cluster, v Values) error {
	live, err := client.New(targetCluster.GetConfig(), client.Options{
		Scheme: targetCluster.GetScheme(), Mapper: targetCluster.GetRESTMapper(), HTTPClient: targetCluster.GetHTTPClient(),
	})
	if err != nil {
		return err
	}
	r := &reconciler{client: live, syncPeriod: v.SyncPeriod, namespaces: v.Namespaces, clock: clock.RealClock{}}
	c, err := controller.New("garbage-collector", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	// The first collection starts with the process, and each requeues the next.
	return c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	}))
}

// object is a ConfigMap or Secret.
type object struct {
	kind string
	types.NamespacedName
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	// Candidates are listed before references, so that references to them which are created in between are found.
	candidates := map[object]*metav1.PartialObjectMetadata{}
	for kind, gvk := range collected {
		err := r.each(ctx, gvk, func(o *metav1.PartialObjectMetadata) {
			if r.clock.Since(o.CreationTimestamp.Time) >= minimumLifetime && o.DeletionTimestamp == nil {
				candidates[object{kind, client.ObjectKeyFromObject(o)}] = o
			}
		}, client.MatchingLabels{resourcesv1alpha1.GarbageCollectable: "true"})
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	for _, gvk := range referring {
		if len(candidates) == 0 {
			break
		}
		err := r.each(ctx, gvk, func(o *metav1.PartialObjectMetadata) {
			for key, value := range o.Annotations {
				if kind, name, ok := references.Parse(key, value); ok {
					delete(candidates, object{kind, types.NamespacedName{Namespace: o.Namespace, Name: name}})
				}
			}
		})
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	var errs []error
	log := logf.FromContext(ctx)
	for _, o := range candidates {
		log.Info("Deleting an object that is not in use", "kind", o.Kind, "object", klog.KObj(o))
		// The precondition fails if the object was changed since, because it is used again.
		err := r.client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete %s %s: %w", o.Kind, client.ObjectKeyFromObject(o), err))
		}
	}
	return reconcile.Result{RequeueAfter: r.syncPeriod}, errors.Join(errs...)
}

// each calls a function for the metadata of all objects of a kind. A kind that the cluster does not have has none.
func (r *reconciler) each(ctx context.Context, gvk schema.GroupVersionKind, do func(*metav1.PartialObjectMetadata), options ...client.ListOption) error {
	namespaces := r.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		next := ""
		for {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			err := r.client.List(ctx, list, append(slices.Clone(options), client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next))...)
			if meta.IsNoMatchError(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("list %s: %w", gvk.Kind, err)
			}
			for i := range list.Items {
				list.Items[i].SetGroupVersionKind(gvk)
				do(&list.Items[i])
			}
			if next = list.Continue; next == "" {
				break
			}
		}
	}
	return nil
}
