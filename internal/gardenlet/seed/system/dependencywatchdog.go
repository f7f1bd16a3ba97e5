package system

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/dependencywatchdog"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/extension"
)

// deployDependencyWatchdog deploys the prober and the weeder as the settings of the Seed say, and deletes the one that is disabled.
func (s *run) deployDependencyWatchdog(ctx context.Context) error {
	return s.dependencyWatchdog(ctx, dependencywatchdog.ProberEnabled(s.seed), dependencywatchdog.WeederEnabled(s.seed))
}

// deleteDependencyWatchdog deletes both.
func (s *run) deleteDependencyWatchdog(ctx context.Context) error {
	return s.dependencyWatchdog(ctx, false, false)
}

func (s *run) dependencyWatchdog(ctx context.Context, prober, weeder bool) error {
	v := dependencywatchdog.Values{Namespace: constants.GardenNamespace, Image: s.Images.Gardener, Replicas: 1}
	if !prober {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: dependencywatchdog.Prober}}
		if err := s.SeedAPI.Delete(ctx, deployment); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Deployment %q: %w", client.ObjectKeyFromObject(deployment), err)
		}
		if err := s.endProtection(ctx); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		desired bool
		lease   string
		objects func(dependencywatchdog.Values) ([]client.Object, error)
	}{
		{prober, dependencywatchdog.ProberLease, dependencywatchdog.ProberObjects}, {weeder, dependencywatchdog.WeederLease, dependencywatchdog.WeederObjects},
	} {
		objects, err := part.objects(v)
		if err != nil {
			return err
		}
		autoscalers := workload.Autoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })
		if part.desired {
			if workload.Autoscaled(s.seed) {
				objects = append(objects, autoscalers...)
			}
			if err := s.apply(ctx, objects...); err != nil {
				return err
			}
			continue
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: part.lease}}
		for _, object := range append(append(objects, autoscalers...), lease) {
			if err := s.SeedAPI.Delete(ctx, object); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
				return fmt.Errorf("delete %T %q: %w", object, client.ObjectKeyFromObject(object), err)
			}
		}
	}
	return nil
}

// endProtection releases what the prober has scaled down in shoots. It is repeated with each run, as a pod of the prober may go on for a moment.
func (s *run) endProtection(ctx context.Context) error {
	var errs []error
	for _, name := range dependencywatchdog.Scaled() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
		if err := s.SeedAPI.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
			return fmt.Errorf("list Deployments %q: %w", name, err)
		}
		for i := range list.Items {
			if _, protected := list.Items[i].Annotations[constants.DependencyWatchdogMeltdownProtectionActive]; protected {
				errs = append(errs, s.release(ctx, client.ObjectKeyFromObject(&list.Items[i])))
			}
		}
	}
	return errors.Join(errs...)
}

// release scales a Deployment of a shoot up, unless the prober would not: then the flow of the shoot, or the operator, decides about its pods.
func (s *run) release(ctx context.Context, key client.ObjectKey) error {
	cluster, err := extension.ReadCluster(ctx, s.SeedAPI, key.Namespace)
	if err != nil || cluster == nil {
		return err
	}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		deployment := &appsv1.Deployment{}
		if err := s.SeedAPI.Get(ctx, key, deployment); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := deployment.DeepCopy()
		if !dependencywatchdog.Ignored(deployment) && dependencywatchdog.Probed(cluster.Shoot) && ptr.Deref(deployment.Spec.Replicas, 1) == 0 {
			dependencywatchdog.ScaleUp(deployment)
		} else {
			dependencywatchdog.Release(deployment)
		}
		return s.SeedAPI.Patch(ctx, deployment, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}); err != nil {
		return fmt.Errorf("release Deployment %q, which dependency-watchdog has scaled down: %w", key, err)
	}
	return nil
}
