package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultSeed fills in the defaults of a Seed.
func DefaultSeed(seed *Seed) {
	DefaultSeedSpec(&seed.Spec)
}

// DefaultSeedSpec fills in the defaults of a Seed's spec.
func DefaultSeedSpec(spec *SeedSpec) {
	if len(spec.Networks.IPFamilies) == 0 {
		spec.Networks.IPFamilies = []IPFamily{IPFamilyIPv4}
	}

	settings := ensure(&spec.Settings)
	reservation := ensure(&settings.ExcessCapacityReservation)
	if (reservation.Enabled == nil || *reservation.Enabled) && len(reservation.Configs) == 0 {
		reservation.Configs = []SeedSettingExcessCapacityReservationConfig{{Resources: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("2"),
			corev1.ResourceMemory: resource.MustParse("6Gi"),
		}}}
	}
	setDefault(&settings.Scheduling, SeedSettingScheduling{Visible: true})
	loadBalancers := ensure(&settings.LoadBalancerServices)
	if loadBalancers.ZonalIngress == nil {
		loadBalancers.ZonalIngress = &SeedSettingLoadBalancerServicesZonalIngress{Enabled: new(true)}
	}
	setDefault(&settings.VerticalPodAutoscaler, SeedSettingVerticalPodAutoscaler{Enabled: true})
	watchdog := ensure(&settings.DependencyWatchdog)
	setDefault(&watchdog.Weeder, SeedSettingDependencyWatchdogWeeder{Enabled: true})
	setDefault(&watchdog.Prober, SeedSettingDependencyWatchdogProber{Enabled: true})
	setDefault(&settings.TopologyAwareRouting, SeedSettingTopologyAwareRouting{})
	setDefault(&settings.PersistentVolumeClaimAutoscaler, SeedSettingPersistentVolumeClaimAutoscaler{})
}
