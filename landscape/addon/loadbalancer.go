package addon

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// localLoadBalancer gives Services of type LoadBalancer an address of the cluster's pool.
func localLoadBalancer(v Values) ([]client.Object, error) {
	image, err := v.image("local-loadbalancer")
	if err != nil {
		return nil, err
	}
	const name, namespace = "local-loadbalancer", "kube-system"
	w := workload{
		name: name, namespace: namespace, priority: "system-cluster-critical",
		container: corev1.Container{Image: image, Args: []string{"--pool=" + v.Pool.String()}, Resources: requests("5m", "24Mi")},
	}
	deployment := w.deployment()
	// Two of them could hand out one address twice.
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	objects := clusterRole(namespace, name,
		rule("", "services", "get list watch patch update"),
		rule("", "services/status", "patch update"),
		rule("", "nodes", "get list watch"),
		rule("", "events", "create patch update"),
	)
	return append(objects, deployment), nil
}
