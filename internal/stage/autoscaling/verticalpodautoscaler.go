package autoscaling

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// VerticalInputs are what the tasks for the Vertical Pod Autoscaler read.
type VerticalInputs struct {
	Run *stage.Run
	// Desired is whether the cluster has a Vertical Pod Autoscaler.
	Desired bool
	// Hibernates is whether the cluster is being hibernated, so that there are no pods to scale.
	Hibernates bool
	// Replicas is the number of pods of each of its Deployments.
	Replicas int32
	// Values returns its values with a number of pods. It is called when the task credentials is done.
	Values func(replicas int32) (verticalpodautoscaler.Values, error)
}

// VerticalTasks returns the tasks for the Vertical Pod Autoscaler of the cluster.
func VerticalTasks(in VerticalInputs) []flow.Task {
	switch {
	case !in.Desired:
		return []flow.Task{flow.Do("stale-vpa", "Deleting unused Vertical Pod Autoscaler", in.remove, "namespace")}
	case in.Hibernates:
		return []flow.Task{flow.Do("stop-vpa", "Scaling down Vertical Pod Autoscaler", in.deploy(0), "credentials")}
	}
	return []flow.Task{flow.Do("vpa", "Deploying Vertical Pod Autoscaler", in.deploy(in.Replicas), "tokens")}
}

// deploy returns what a task does that deploys it with a number of pods, and before that what it needs in the cluster.
func (in VerticalInputs) deploy(replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		values, err := in.Values(replicas)
		if err != nil {
			return err
		}
		target, err := verticalpodautoscaler.TargetObjects(values)
		if err != nil {
			return err
		}
		objects, err := verticalpodautoscaler.Objects(values)
		if err != nil {
			return err
		}
		if err := in.Run.ApplyManaged(ctx, verticalpodautoscaler.ManagedResourceName, target...); err != nil {
			return err
		}
		return in.Run.Apply(ctx, objects...)
	}
}

// remove deletes it, if there is one. What a repetition recognizes it by is deleted last. Its definitions, and with them all VerticalPodAutoscalers in the
// cluster, are deleted by gardener-resource-manager.
func (in VerticalInputs) remove(ctx context.Context) error {
	resource, key := &resourcesv1alpha1.ManagedResource{}, client.ObjectKey{Namespace: in.Run.Namespace, Name: verticalpodautoscaler.ManagedResourceName}
	if err := in.Run.SeedAPI.Get(ctx, key, resource); err != nil {
		return client.IgnoreNotFound(err)
	}
	objects, err := verticalpodautoscaler.Objects(verticalpodautoscaler.Values{
		Namespace: in.Run.Namespace, Replicas: 2, Shoot: &verticalpodautoscaler.Shoot{}, // with several pods it has more objects
	})
	if err != nil {
		return err
	}
	if err := in.Run.Delete(ctx, objects...); err != nil {
		return fmt.Errorf("delete Vertical Pod Autoscaler: %w", err)
	}
	return in.Run.DeleteManaged(ctx, key.Name)
}
