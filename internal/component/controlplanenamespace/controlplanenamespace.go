// Package controlplanenamespace renders the namespace of a control plane in a seed, with the labels that extensions and webhooks rely on.
package controlplanenamespace

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
)

// Values are what the namespace depends on.
type Values struct {
	// Name is the technical ID of the shoot.
	Name string
	// Project is the name of the project of the shoot.
	Project string
	// Shoot and Seed are the objects in the garden.
	Shoot *corev1beta1.Shoot
	Seed  *corev1beta1.Seed
	// Extensions are the types of the extensions that the shoot has.
	Extensions []string
	// Zones are those of the control plane's pods. Volumes are in them, so later there can be more, but not others.
	Zones []string
}

// Object renders the namespace.
func Object(v Values) client.Object {
	labels := map[string]string{
		constants.GardenRole:                             constants.GardenRoleShoot,
		constants.SeedProvider:                           v.Seed.Spec.Provider.Type,
		constants.ShootProvider:                          v.Shoot.Spec.Provider.Type,
		constants.ProjectName:                            v.Project,
		constants.ShootUID:                               string(v.Shoot.UID),
		resourcesv1alpha1.HighAvailabilityConfigConsider: "true",
		// Extensions may need it for what they run there.
		podsecurityapi.EnforceLevelLabel: string(podsecurityapi.LevelPrivileged),
	}
	if networking := v.Shoot.Spec.Networking; networking != nil && networking.Type != nil {
		labels[constants.NetworkingProvider] = *networking.Type
	}
	labels[constants.BackupProvider] = v.Seed.Spec.Provider.Type
	if backup := v.Seed.Spec.Backup; backup != nil {
		labels[constants.BackupProvider] = backup.Provider
	}
	for _, extension := range v.Extensions {
		labels[constants.ExtensionPrefix+extension] = "true"
	}
	for i := range v.Shoot.Spec.Provider.Workers {
		maps.Copy(labels, operatingsystemconfig.ContainerRuntimeLabels(&v.Shoot.Spec.Provider.Workers[i]))
	}
	annotations := map[string]string{
		constants.ShootUIDAnnotation:                  string(v.Shoot.UID),
		resourcesv1alpha1.HighAvailabilityConfigZones: strings.Join(v.Zones, ","),
		// It is also set without failure tolerance: then one replica is enough.
		resourcesv1alpha1.HighAvailabilityConfigFailureToleranceType: string(FailureTolerance(v.Shoot)),
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v.Name, Labels: labels, Annotations: annotations}}
}

// FailureTolerance is the failure tolerance type of the control plane of a shoot: none, node or zone.
func FailureTolerance(shoot *corev1beta1.Shoot) corev1beta1.FailureToleranceType {
	if c := shoot.Spec.ControlPlane; c != nil && c.HighAvailability != nil {
		return c.HighAvailability.FailureTolerance.Type
	}
	return ""
}
