package core

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func controllerDeployment() *kind.Kind[corev1beta1.ControllerDeployment] {
	return &kind.Kind[corev1beta1.ControllerDeployment]{
		GroupVersionKind: gvk("ControllerDeployment"),
		FurtherVersions:  []string{gardencorev1.SchemeGroupVersion.Version},
		Plural:           "controllerdeployments",
		ShortNames:       []string{"ctrldeploy"},
		Categories:       all,
		HasGeneration:    true,

		Validate: func(d *corev1beta1.ControllerDeployment) field.ErrorList {
			v1, errs := toV1(d)
			return append(errs, core.ValidateControllerDeployment(v1)...)
		},
		ValidateUpdate: func(d, old *corev1beta1.ControllerDeployment) field.ErrorList {
			v1, errs := toV1(d)
			oldV1, _ := toV1(old)
			return append(errs, core.ValidateControllerDeploymentUpdate(v1, oldV1)...)
		},
	}
}

// toV1 returns a ControllerDeployment in the version that is validated.
func toV1(deployment *corev1beta1.ControllerDeployment) (*gardencorev1.ControllerDeployment, field.ErrorList) {
	out := &gardencorev1.ControllerDeployment{}
	if err := deployment.ToV1(out); err != nil {
		return out, field.ErrorList{field.Invalid(field.NewPath("providerConfig"), deployment.Type, err.Error())}
	}
	return out, nil
}
