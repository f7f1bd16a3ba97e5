package shoot

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Cached configures the cache: of each object it keeps only the fields that decisions need, to save memory with ten thousand shoots.
func Cached() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1beta1.Shoot{}:                  {Transform: trimmed(trimShoot)},
		&corev1beta1.Seed{}:                   {Transform: trimmed(trimSeed)},
		&corev1beta1.CloudProfile{}:           {Transform: trimmed(trimCloudProfile)},
		&corev1beta1.NamespacedCloudProfile{}: {Transform: trimmed(trimNamespacedCloudProfile)},
		&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{constants.GardenNamespace: {}},
			Label:      labels.SelectorFromSet(labels.Set{constants.SchedulingPurpose: constants.SchedulingPurposeRegionConfig}),
		},
	}
}

// trimmed returns the transformation for an informer.
func trimmed[T any](trim func(*T) *T) func(any) (any, error) {
	return func(obj any) (any, error) {
		if obj, ok := obj.(*T); ok {
			return trim(obj), nil
		}
		return obj, nil
	}
}

// identity returns the metadata that every object keeps.
func identity(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID,
		ResourceVersion: meta.ResourceVersion, Generation: meta.Generation, DeletionTimestamp: meta.DeletionTimestamp,
	}
}

// trimShoot keeps the seeds of a Shoot and, if it has none, its requirements.
func trimShoot(s *corev1beta1.Shoot) *corev1beta1.Shoot {
	out := &corev1beta1.Shoot{ObjectMeta: identity(s.ObjectMeta)}
	out.Spec.SeedName, out.Status.SeedName = s.Spec.SeedName, s.Status.SeedName
	if s.Spec.SeedName != nil {
		return out
	}
	out.Spec = corev1beta1.ShootSpec{
		CloudProfile: s.Spec.CloudProfile, Purpose: s.Spec.Purpose, Region: s.Spec.Region,
		CloudProfileName: s.Spec.CloudProfileName, //nolint:staticcheck // old shoots have this one only
		SeedSelector:     s.Spec.SeedSelector, Tolerations: s.Spec.Tolerations, ControlPlane: s.Spec.ControlPlane,
		SchedulerName: s.Spec.SchedulerName, AccessRestrictions: s.Spec.AccessRestrictions,
	}
	if n := s.Spec.Networking; n != nil {
		out.Spec.Networking = &corev1beta1.Networking{Nodes: n.Nodes, Pods: n.Pods, Services: n.Services, IPFamilies: n.IPFamilies}
	}
	if s.Spec.DNS != nil {
		out.Spec.DNS = &corev1beta1.DNS{Domain: s.Spec.DNS.Domain, Providers: s.Spec.DNS.Providers} //nolint:staticcheck // providers are still used
	}
	out.Spec.Provider.Type = s.Spec.Provider.Type
	for _, w := range s.Spec.Provider.Workers {
		out.Spec.Provider.Workers = append(out.Spec.Provider.Workers, corev1beta1.Worker{Name: w.Name, ControlPlane: w.ControlPlane, Zones: w.Zones})
	}
	out.Status.LastOperation = s.Status.LastOperation
	return out
}

func trimSeed(s *corev1beta1.Seed) *corev1beta1.Seed {
	out := &corev1beta1.Seed{ObjectMeta: identity(s.ObjectMeta)}
	out.Labels = s.Labels
	if stop, ok := s.Annotations[constants.EmergencyStopShootReconciliations]; ok {
		out.Annotations = map[string]string{constants.EmergencyStopShootReconciliations: stop}
	}
	out.Spec = corev1beta1.SeedSpec{
		Networks: s.Spec.Networks, Taints: s.Spec.Taints, Settings: s.Spec.Settings, AccessRestrictions: s.Spec.AccessRestrictions,
		Provider: corev1beta1.SeedProvider{Type: s.Spec.Provider.Type, Region: s.Spec.Provider.Region, Zones: s.Spec.Provider.Zones},
	}
	for _, domain := range s.Spec.DNS.Defaults {
		out.Spec.DNS.Defaults = append(out.Spec.DNS.Defaults, corev1beta1.SeedDNSProviderConfig{Domain: domain.Domain})
	}
	out.Status = corev1beta1.SeedStatus{
		Conditions: s.Status.Conditions, Allocatable: s.Status.Allocatable, LastOperation: s.Status.LastOperation,
	}
	return out
}

func trimCloudProfile(p *corev1beta1.CloudProfile) *corev1beta1.CloudProfile {
	return &corev1beta1.CloudProfile{
		ObjectMeta: identity(p.ObjectMeta),
		Spec:       corev1beta1.CloudProfileSpec{SeedSelector: p.Spec.SeedSelector},
	}
}

func trimNamespacedCloudProfile(p *corev1beta1.NamespacedCloudProfile) *corev1beta1.NamespacedCloudProfile {
	out := &corev1beta1.NamespacedCloudProfile{ObjectMeta: identity(p.ObjectMeta)}
	out.Spec.Parent = p.Spec.Parent
	if merged := p.Status.CloudProfileSpec; merged != nil {
		out.Status.CloudProfileSpec = &corev1beta1.CloudProfileSpec{SeedSelector: merged.SeedSelector}
	}
	return out
}
