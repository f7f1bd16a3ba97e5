package addon

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
)

// localLoadBalancer gives Services of type LoadBalancer an address of the cluster's pool.
func localLoadBalancer(v Values) ([]client.Object, error) {
	image, err := v.image("local-loadbalancer")
	if err != nil {
		return nil, err
	}
	const name, namespace = "local-loadbalancer", "kube-system"
	w := workload.Workload{
		Name: name, Namespace: namespace, Replicas: 1, PriorityClass: "system-cluster-critical",
		Container: corev1.Container{Image: image, Args: []string{"--pool=" + v.Pool.String()}, Resources: workload.Requests("5m", "24Mi")},
	}
	deployment := w.Deployment()
	// Two replicas could assign one address twice.
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	objects := clusterRole(w,
		workload.Rule("", "services", "get list watch"),
		workload.Rule("", "services/status", "patch"),
		workload.Rule("", "nodes", "get list watch"),
		workload.Rule("", "events", "create patch update"),
	)
	return append(objects, deployment), nil
}
