package care

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/garden/values"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
)

type reconciler struct {
	Values
	runtimeCache client.Client
}

// observed is what one pass has read.
type observed struct {
	// apiServerError is why the API server of the virtual garden is not available.
	apiServerError   error
	managedResources []resourcesv1alpha1.ManagedResource
	deployments      []appsv1.Deployment
	etcds            []druidv1alpha1.Etcd
	// componentProblems are those of components of the runtime cluster without a ManagedResource.
	componentProblems []string
	// authorities are the Secrets with the CAs that only operations renew.
	authorities []metav1.PartialObjectMetadata
}

// Reconcile checks the garden.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	garden := &operatorv1alpha1.Garden{}
	if err := r.runtimeCache.Get(ctx, req.NamespacedName, garden); err != nil {
		if apierrors.IsNotFound(err) {
			r.Metrics.observe(req.Name, nil)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if processing(garden) && !inUse(garden) {
		return reconcile.Result{}, nil // its end is an event
	}
	o, err := r.observe(ctx, garden)
	if err != nil {
		return reconcile.Result{}, err
	}
	again, err := r.writeStatus(ctx, garden, o)
	if err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

func (r *reconciler) observe(ctx context.Context, garden *operatorv1alpha1.Garden) (*observed, error) {
	o := &observed{apiServerError: r.Healthz(ctx)}
	for _, namespace := range namespaces {
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := r.runtimeCache.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list ManagedResources: %w", err)
		}
		o.managedResources = append(o.managedResources, list.Items...)
	}
	deployments, etcds := &appsv1.DeploymentList{}, &druidv1alpha1.EtcdList{}
	for _, list := range []client.ObjectList{deployments, etcds} {
		if err := r.runtimeCache.List(ctx, list, client.InNamespace(constants.GardenNamespace)); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	o.deployments, o.etcds = deployments.Items, etcds.Items
	var err error
	if o.authorities, err = authorities(ctx, r.RuntimeAPI); err != nil {
		return nil, err
	}
	o.componentProblems, err = kube.Problems(ctx, r.RuntimeAPI, r.runtimeCache.Scheme(), systemcomponents.Components(values.Autoscaled(garden))...)
	return o, err
}

// writeStatus writes the conditions that differ, and returns when to check again.
func (r *reconciler) writeStatus(ctx context.Context, garden *operatorv1alpha1.Garden, o *observed) (time.Duration, error) {
	now, again, after, changed := r.Clock.Now(), r.Config.SyncPeriod.Duration, garden.DeepCopy(), false
	for _, want := range decide(o) {
		before, threshold := kube.Condition(garden.Status.Conditions, want.Type), r.threshold(want.Type)
		for _, left := range []time.Duration{
			kube.Soften(before, &want, threshold, now), postpone(garden.Status.LastOperation, before, &want, threshold, now),
		} {
			if left > 0 {
				again = min(again, left)
			}
		}
		conditions, differs := kube.SetCondition(after.Status.Conditions, want, now)
		after.Status.Conditions, changed = conditions, changed || differs
	}
	conditions, differs := withExpiry(after.Status.Conditions, expiry(o.authorities, now), now)
	after.Status.Conditions, changed = conditions, changed || differs
	r.Metrics.observe(garden.Name, after.Status.Conditions)
	if !changed {
		return again, nil
	}
	// Lists of custom resources are patched as a whole: a condition that was written meanwhile must not be lost.
	patch := client.MergeFromWithOptions(garden, client.MergeFromWithOptimisticLock{})
	if err := r.runtimeCache.Status().Patch(ctx, after, patch); err != nil {
		return 0, fmt.Errorf("patch status of Garden %q: %w", garden.Name, err)
	}
	return again, nil
}

// threshold is the configured threshold of a condition, or zero.
func (r *reconciler) threshold(typ corev1beta1.ConditionType) time.Duration {
	for _, t := range r.Config.ConditionThresholds {
		if t.Type == string(typ) {
			return t.Duration.Duration
		}
	}
	return 0
}
