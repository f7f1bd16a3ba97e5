// Package gardenercontrollermanager deploys gardener-controller-manager, which keeps the objects of the garden consistent.
package gardenercontrollermanager

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/workload"
)

// Name is the name of the Deployment.
const Name = "gardener-controller-manager"

const (
	healthPort  = 2718
	metricsPort = 2719
)

// Values are what the controller manager is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. One of them leads.
	Replicas int32
	// Config is its configuration. Objects overwrites ports.
	Config controllermanagerconfigv1alpha1.ControllerManagerConfiguration
}

// Objects renders the controller manager for the cluster that serves the garden API.
func Objects(v Values) ([]client.Object, error) {
	config := v.Config.DeepCopy()
	config.APIVersion, config.Kind = controllermanagerconfigv1alpha1.SchemeGroupVersion.String(), "ControllerManagerConfiguration"
	config.Server.HealthProbes = &controllermanagerconfigv1alpha1.Server{Port: healthPort}
	config.Server.Metrics = &controllermanagerconfigv1alpha1.Server{Port: metricsPort}
	process := gardenerprocess.Values{
		Name: Name, Role: "controller-manager", Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameGardenSystem200, Config: config,
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}},
		Ready: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP), Live: workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
		Resources: workload.Requests("20m", "80Mi"),
	}
	objects, err := process.Objects()
	if err != nil {
		return nil, err
	}
	w := process.Workload()
	const role = "gardener.cloud:system:controller-manager"
	return append(objects, w.Service("metrics", metricsPort), w.ClusterRoleBinding(role, role)), nil
}
