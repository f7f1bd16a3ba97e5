// Package health checks whether the objects of ManagedResources exist, are healthy, and are rolled out.
//
// It reads ManagedResources in the source cluster and their objects in the target cluster, and writes the conditions ResourcesHealthy
// and ResourcesProgressing. Source: concepts.txt, Gardener Resource Manager, "health Controller".
package health

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/resourcemanager/managedresource"
)

const (
	// passTimeout limits a reconciliation, which mostly reads caches.
	passTimeout = time.Minute
	// lookTimeout is how long a new watch may take to sync; after that, the object is read from the API server.
	lookTimeout = 5 * time.Second
)

// Values are the settings of the controller.
type Values struct {
	// Class is the class of ManagedResources that this process is responsible for: a name, or "*" for all.
	Class string
	// Concurrency is how many ManagedResources are reconciled at once.
	Concurrency int
	// SyncPeriod is how often each is checked without events.
	SyncPeriod time.Duration
	// ClusterID is the prefix of the origin of objects. It may be empty.
	ClusterID string
}

// reconciler checks the objects of a ManagedResource.
type reconciler struct {
	Values
	source client.Client
	target *target
	pods   *oldPods
	clock  clock.PassiveClock
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := r.source.Get(ctx, request.NamespacedName, mr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !ready(r.Class, mr) {
		return reconcile.Result{}, nil // the change that makes it ready requeues it
	}
	// The first check after a change reads from the API server, as the caches may not have it yet.
	progressing := kube.Condition(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	p := &pass{fresh: progressing == nil || progressing.Status == corev1beta1.ConditionUnknown, unseen: map[schema.GroupVersionKind]bool{}}
	findings := make([]finding, 0, len(mr.Status.Resources))
	for _, ref := range mr.Status.Resources {
		found, err := r.look(ctx, request, ref, p)
		if err != nil {
			return reconcile.Result{}, err
		}
		findings = append(findings, found)
	}
	if err := r.report(ctx, mr, decide(findings)); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

// look checks one object.
func (r *reconciler) look(ctx context.Context, request reconcile.Request, ref resourcesv1alpha1.ObjectReference, p *pass) (finding, error) {
	f := finding{kind: ref.Kind, name: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
	if managedresource.Truthy(ref.Annotations[resourcesv1alpha1.SkipHealthCheck]) {
		return f, nil
	}
	gvk := ref.GroupVersionKind()
	if err := r.target.ensureWatch(gvk); err != nil {
		return f, err
	}
	object, err := r.target.get(ctx, key{gvk, f.name}, p)
	switch {
	case err != nil:
		return f, fmt.Errorf("read %s: %w", f, err)
	case object == nil:
		f.missing = true
	case !managedresource.Truthy(object.GetAnnotations()[resourcesv1alpha1.SkipHealthCheck]):
		f.unhealthy, f.progressing = kube.Healthy(object), kube.RolledOut(object)
		if deployment, ok := object.(*appsv1.Deployment); ok && f.progressing == nil {
			if f.progressing, err = r.pods.check(ctx, request, deployment); err != nil {
				return f, fmt.Errorf("list old pods of %s: %w", f, err)
			}
		}
	}
	return f, nil
}
