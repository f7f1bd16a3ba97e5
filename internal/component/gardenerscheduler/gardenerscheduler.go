// Package gardenerscheduler deploys gardener-scheduler, which chooses seeds for shoots.
package gardenerscheduler

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/workload"
)

// Name is the name of the Deployment.
const Name = "gardener-scheduler"

const (
	healthPort  = 10251
	metricsPort = 19251
)

// Values are what the scheduler is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. One of them leads.
	Replicas int32
	// Config is its configuration. Objects overwrites ports.
	Config schedulerconfigv1alpha1.SchedulerConfiguration
}

// Objects renders the scheduler for the cluster that serves the garden API.
func Objects(v Values) ([]client.Object, error) {
	config := v.Config.DeepCopy()
	config.APIVersion, config.Kind = schedulerconfigv1alpha1.SchemeGroupVersion.String(), "SchedulerConfiguration"
	config.Server.HealthProbes = &schedulerconfigv1alpha1.Server{Port: healthPort}
	config.Server.Metrics = &schedulerconfigv1alpha1.Server{Port: metricsPort}
	process := gardenerprocess.Values{
		Name: Name, Role: "scheduler", Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameGardenSystem200, Config: config,
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}},
		Ready: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP), Live: workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
		Resources: workload.Requests("10m", "50Mi"),
	}
	objects, err := process.Objects()
	if err != nil {
		return nil, err
	}
	w := process.Workload()
	const role = "gardener.cloud:system:scheduler"
	return append(objects, w.Service("metrics", metricsPort), w.ClusterRoleBinding(role, role)), nil
}
