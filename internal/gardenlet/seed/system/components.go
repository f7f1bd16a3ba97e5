package system

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/etcddruid"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
)

// vpaComponents are the names of the Deployments of the Vertical Pod Autoscaler.
var vpaComponents = []string{verticalpodautoscaler.Recommender, verticalpodautoscaler.Updater, verticalpodautoscaler.AdmissionController}

// Components are the objects of a seed whose health is not in the status of a ManagedResource: the flow deploys them without one. They
// have kind, namespace and name only.
func Components(seed *corev1beta1.Seed) []client.Object {
	deployment := func(namespace, name string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	components := []client.Object{
		deployment(constants.GardenNamespace, resourcemanager.Name), deployment(constants.GardenNamespace, etcddruid.Name),
		deployment(gateway.Namespace, gateway.Name), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Namespace, Name: gateway.Name}},
	}
	if workload.Autoscaled(seed) {
		for _, name := range vpaComponents {
			components = append(components, deployment(constants.GardenNamespace, name))
		}
	}
	return components
}

// awaitDeployment waits until a Deployment in the namespace garden is rolled out and healthy.
func (r *reconciler) awaitDeployment(ctx context.Context, name string) error {
	return kube.Await(ctx, r.SeedAPI, &appsv1.DeploymentList{}, func(found []*appsv1.Deployment) error {
		if len(found) == 0 {
			return fmt.Errorf("Deployment %s/%s not found", constants.GardenNamespace, name)
		}
		return errors.Join(kube.RolledOut(found[0]), kube.Healthy(found[0]))
	}, nil, client.InNamespace(constants.GardenNamespace), client.MatchingFields{metav1.ObjectNameField: name})
}
