package system

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/dependencywatchdog"
	"gardener.cloud/gardener/internal/component/priorityclass"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
)

// Components are the objects of a seed whose health is not in the status of a ManagedResource: the flow deploys them without one. They
// have kind, namespace and name only.
func Components(seed *corev1beta1.Seed, handlers []gardenletconfigv1alpha1.ExposureClassHandler) []client.Object {
	components := append(systemcomponents.Components(workload.Autoscaled(seed)), furtherComponents(seed, handlers)...)
	for name, enabled := range map[string]bool{
		dependencywatchdog.Prober: dependencywatchdog.ProberEnabled(seed), dependencywatchdog.Weeder: dependencywatchdog.WeederEnabled(seed),
	} {
		if enabled {
			components = append(components, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}})
		}
	}
	return components
}

// systemComponents are the inputs for the components that the seed shares with the runtime cluster of a garden.
func (s *run) systemComponents() *systemcomponents.Inputs {
	in := &systemcomponents.Inputs{
		API: s.SeedAPI, FieldManager: fieldManager, Images: s.Images, Replicas: s.replicas, PriorityClasses: priorityclass.Seed(),
		Certificates: s.createCertificates, ResourceManager: s.resourceManager, LoadBalancer: s.loadBalancer(""),
		TerminateTLS: s.TerminateTLS,
	}
	if s.SNI != nil && s.SNI.Ingress != nil {
		in.LoadBalancer.IP, in.LoadBalancer.PodLabels = s.SNI.Ingress.ServiceExternalIP, s.SNI.Ingress.Labels
	}
	if workload.Autoscaled(s.seed) {
		setting := s.seed.Spec.Settings.VerticalPodAutoscaler
		in.Autoscaler = &corev1beta1.VerticalPodAutoscaler{FeatureGates: setting.FeatureGates, MaxAllowed: setting.MaxAllowed}
	}
	if c := s.ETCD; c != nil && c.ETCDController != nil && c.ETCDController.Workers != nil {
		in.EtcdWorkers = int(*c.ETCDController.Workers)
	}
	return in
}

// loadBalancer are the settings of the Seed for the load balancers of gateways, in a zone or for all zones.
func (s *run) loadBalancer(zone string) systemcomponents.LoadBalancer {
	settings := s.seed.Spec.Settings
	if settings == nil || settings.LoadBalancerServices == nil {
		return systemcomponents.LoadBalancer{}
	}
	services := settings.LoadBalancerServices
	lb := systemcomponents.LoadBalancer{
		Annotations: services.Annotations, Class: services.Class, ExternalTrafficPolicy: ptr.Deref(services.ExternalTrafficPolicy, ""),
		ProxyProtocol: services.ProxyProtocol != nil && services.ProxyProtocol.Allowed,
	}
	i := slices.IndexFunc(services.Zones, func(z corev1beta1.SeedSettingLoadBalancerServicesZones) bool { return z.Name == zone })
	if i < 0 {
		return lb
	}
	own := services.Zones[i]
	lb.Annotations = workload.Merge(lb.Annotations, own.Annotations)
	lb.ExternalTrafficPolicy = ptr.Deref(own.ExternalTrafficPolicy, lb.ExternalTrafficPolicy)
	if own.ProxyProtocol != nil {
		lb.ProxyProtocol = own.ProxyProtocol.Allowed
	}
	return lb
}

// resourceManager returns the values of gardener-resource-manager.
func (s *run) resourceManager() (resourcemanager.Values, error) {
	config := resourcemanager.ForSeed()
	if t := s.NodeToleration; t != nil {
		config.Webhooks.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds = t.DefaultNotReadyTolerationSeconds
		config.Webhooks.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds = t.DefaultUnreachableTolerationSeconds
	}
	config.Webhooks.VPAInPlaceUpdates.Enabled = workload.Autoscaled(s.seed) && resourcemanager.UpdatesInPlace(ptr.Deref(s.seed.Status.KubernetesVersion, ""))
	return resourcemanager.Values{
		Namespace: constants.GardenNamespace, Image: s.Images.Gardener, Replicas: s.replicas, Config: config,
		ServerSecret: s.certificates.resourceManager, CABundle: s.certificates.caBundle,
		Zones: len(s.seed.Spec.Provider.Zones) > 1,
	}, nil
}

// HostsGarden is whether a garden runs in the seed, so that gardener-operator deploys the system components.
func HostsGarden(ctx context.Context, seedAPI client.Reader) (bool, error) {
	gardens := &metav1.PartialObjectMetadataList{}
	gardens.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("GardenList"))
	if err := seedAPI.List(ctx, gardens); err != nil && !meta.IsNoMatchError(err) {
		return false, fmt.Errorf("list Gardens in the seed: %w", err)
	}
	return len(gardens.Items) > 0, nil
}
