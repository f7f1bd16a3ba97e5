package system

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/dependencywatchdog"
	"gardener.cloud/gardener/internal/component/workload"
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
