package system

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
)

// destroyAutoscaler removes the Vertical Pod Autoscaler with all that is for it, in the namespaces of shoots too. What others have for an
// autoscaler of their own stays.
func (r *reconciler) destroyAutoscaler(seed *corev1beta1.Seed) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := r.destroy(ctx, func(replicas int32) ([]client.Object, error) {
			return r.autoscalerObjects(seed, replicas, &credentials{autoscaler: "any"})
		}); err != nil {
			return err
		}
		// One that still runs would remember again what is deleted here.
		if err := kube.Await(ctx, r.SeedClient, &corev1.PodList{}, func(pods []*corev1.Pod) error {
			if len(pods) > 0 {
				return fmt.Errorf("pod %q is still there", pods[0].Name)
			}
			return nil
		}, nil, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{constants.App: verticalpodautoscaler.Recommender}); err != nil {
			return err
		}
		var errs []error
		for _, name := range []string{verticalpodautoscaler.Recommender, verticalpodautoscaler.Updater, verticalpodautoscaler.AdmissionController} {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}}
			errs = append(errs, client.IgnoreNotFound(r.SeedClient.Delete(ctx, lease)))
		}
		return errors.Join(append(errs, removeAutoscalers(ctx, r.SeedClient))...)
	}
}

// removeAutoscalers deletes the VerticalPodAutoscalers of our components, and what the recommender has remembered for them.
func removeAutoscalers(ctx context.Context, c client.Client) error {
	autoscalers, err := autoscalingObjects(ctx, c, workload.AutoscalerKind.Kind, client.MatchingLabels{workload.AutoscalerLabel: "true"})
	if err != nil || len(autoscalers) == 0 {
		return err
	}
	checkpoints, err := autoscalingObjects(ctx, c, "VerticalPodAutoscalerCheckpoint")
	if err != nil {
		return err
	}
	ours := map[client.ObjectKey]bool{}
	for i := range autoscalers {
		ours[client.ObjectKeyFromObject(&autoscalers[i])] = true
	}
	var errs []error
	for i := range checkpoints {
		name, _, _ := unstructured.NestedString(checkpoints[i].Object, "spec", "vpaObjectName")
		if ours[client.ObjectKey{Namespace: checkpoints[i].GetNamespace(), Name: name}] {
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, &checkpoints[i])))
		}
	}
	if err := errors.Join(errs...); err != nil { // without its autoscaler, nobody knows whose a checkpoint is
		return fmt.Errorf("delete checkpoints: %w", err)
	}
	for i := range autoscalers {
		errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, &autoscalers[i])))
	}
	return errors.Join(errs...)
}

// autoscalingObjects lists objects of autoscaling.k8s.io. There are none of a kind that is not there.
func autoscalingObjects(ctx context.Context, c client.Client, kind string, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(workload.AutoscalerKind.GroupVersion().WithKind(kind))
	if err := c.List(ctx, list, options...); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list objects of kind %s: %w", kind, err)
	}
	return list.Items, nil
}

// ensureAutoscalerKinds creates the kinds of the Vertical Pod Autoscaler where they are not. Those of an autoscaler that somebody else has
// brought stay as they are.
func ensureAutoscalerKinds(ctx context.Context, c client.WithWatch) error {
	definitions, err := crds.VerticalPodAutoscaler()
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		err := c.Get(ctx, client.ObjectKeyFromObject(definition), kube.Metadata(definition.GroupVersionKind()))
		if apierrors.IsNotFound(err) {
			err = crds.Deploy(ctx, c, owner, definition)
		}
		if err != nil {
			return fmt.Errorf("create kind %s: %w", definition.Spec.Names.Kind, err)
		}
	}
	return nil
}
