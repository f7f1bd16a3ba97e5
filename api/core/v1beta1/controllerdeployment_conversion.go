package v1beta1

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// resourcesAnnotation holds the resources of a deployment, as JSON, in this version, which has no field for them.
const resourcesAnnotation = "migration.controllerdeployment.gardener.cloud/resources"

// ToV1 writes the deployment in version v1. A type other than "helm" has no place there and travels in annotations.
func (in *ControllerDeployment) ToV1(out *gardencorev1.ControllerDeployment) error {
	in = in.DeepCopy()
	*out = gardencorev1.ControllerDeployment{
		TypeMeta:               in.TypeMeta,
		ObjectMeta:             in.ObjectMeta,
		InjectGardenKubeconfig: in.InjectGardenKubeconfig,
	}
	if resources, ok := out.Annotations[resourcesAnnotation]; ok {
		if err := json.Unmarshal([]byte(resources), &out.Resources); err != nil {
			return fmt.Errorf("read annotation %s: %w", resourcesAnnotation, err)
		}
		delete(out.Annotations, resourcesAnnotation)
	}
	switch in.Type {
	case "":
		return nil
	case constants.ControllerDeploymentTypeHelm:
		helm := &HelmControllerDeployment{}
		if len(in.ProviderConfig.Raw) > 0 {
			if err := json.Unmarshal(in.ProviderConfig.Raw, helm); err != nil {
				return fmt.Errorf("read providerConfig of type helm: %w", err)
			}
		}
		out.Helm = &gardencorev1.HelmControllerDeployment{RawChart: helm.Chart, Values: helm.Values}
		if helm.OCIRepository != nil {
			out.Helm.OCIRepository = new(gardencorev1.OCIRepository(*helm.OCIRepository))
		}
		return nil
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[constants.MigrationControllerDeploymentType] = in.Type
	if len(in.ProviderConfig.Raw) > 0 {
		out.Annotations[constants.MigrationControllerDeploymentProviderConfig] = string(in.ProviderConfig.Raw)
	}
	return nil
}

// FromV1 writes a deployment of version v1 in this version. Its resources travel in an annotation.
//
//nolint:staticcheck // the receiver is named for its role, which is the other one in ToV1
func (out *ControllerDeployment) FromV1(in *gardencorev1.ControllerDeployment) error {
	in = in.DeepCopy()
	*out = ControllerDeployment{
		TypeMeta:               in.TypeMeta,
		ObjectMeta:             in.ObjectMeta,
		InjectGardenKubeconfig: in.InjectGardenKubeconfig,
	}
	if len(in.Resources) > 0 {
		data, err := json.Marshal(in.Resources)
		if err != nil {
			return fmt.Errorf("write resources: %w", err)
		}
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[resourcesAnnotation] = string(data)
	}
	if in.Helm != nil {
		helm := HelmControllerDeployment{Chart: in.Helm.RawChart, Values: in.Helm.Values}
		if in.Helm.OCIRepository != nil {
			helm.OCIRepository = new(OCIRepository(*in.Helm.OCIRepository))
		}
		data, err := json.Marshal(helm)
		if err != nil {
			return fmt.Errorf("write providerConfig of type helm: %w", err)
		}
		out.Type, out.ProviderConfig = constants.ControllerDeploymentTypeHelm, runtime.RawExtension{Raw: data}
		return nil
	}
	if config, ok := out.Annotations[constants.MigrationControllerDeploymentProviderConfig]; ok {
		out.ProviderConfig = runtime.RawExtension{Raw: []byte(config)}
	}
	out.Type = out.Annotations[constants.MigrationControllerDeploymentType]
	delete(out.Annotations, constants.MigrationControllerDeploymentType)
	delete(out.Annotations, constants.MigrationControllerDeploymentProviderConfig)
	return nil
}
