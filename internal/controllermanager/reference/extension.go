package reference

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/index"
	"gardener.cloud/gardener/internal/controllermanager/uses"
)

// Seeds refer to Secrets and ConfigMaps for their extensions, backups and DNS records.
func Seeds() Referrer {
	return Referrer{
		Object: &corev1beta1.Seed{}, List: &corev1beta1.SeedList{}, Index: index.References,
		Refs: func(obj client.Object) []uses.Ref {
			return index.SeedReferences(obj.(*corev1beta1.Seed)) //nolint:forcetypeassert // the kind of the Referrer
		},
	}
}

// ControllerDeployments refer to Secrets and ConfigMaps for their charts.
func ControllerDeployments() Referrer {
	return Referrer{
		Object: &gardencorev1.ControllerDeployment{}, List: &gardencorev1.ControllerDeploymentList{}, Index: index.References,
		Refs: func(obj client.Object) []uses.Ref {
			return index.DeploymentReferences(obj.(*gardencorev1.ControllerDeployment)) //nolint:forcetypeassert // the kind of the Referrer
		},
	}
}
