package values

import (
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/stage/credentials"
)

// VerticalPodAutoscaler returns the values of the Vertical Pod Autoscaler of the shoot with a number of pods.
func (s Source) VerticalPodAutoscaler(replicas int32) (verticalpodautoscaler.Values, error) {
	set, err := s.Credentials.All()
	if err != nil {
		return verticalpodautoscaler.Values{}, err
	}
	v := verticalpodautoscaler.Values{
		Namespace: s.Namespace, Replicas: replicas, Config: s.Shoot.Spec.Kubernetes.VerticalPodAutoscaler,
		ServerSecret: set.Name(credentials.VPAAdmissionController), CABundle: set.Bundle(constants.SecretNameCACluster),
		TrafficDistribution: s.TrafficDistribution(),
		Shoot:               &verticalpodautoscaler.Shoot{GenericKubeconfig: set.Name(constants.SecretNameGenericTokenKubeconfig)},
	}
	for name, image := range map[string]*string{
		verticalpodautoscaler.Recommender: &v.Images.Recommender, verticalpodautoscaler.Updater: &v.Images.Updater,
		verticalpodautoscaler.AdmissionController: &v.Images.AdmissionController,
	} {
		if *image, err = s.image(name); err != nil {
			return v, err
		}
	}
	return v, nil
}
