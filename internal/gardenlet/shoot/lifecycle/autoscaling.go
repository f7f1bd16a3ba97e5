package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/vpnseedserver"
	"gardener.cloud/gardener/internal/component/workload"
)

// autoscalers have the pods of objects scaled, if the seed does that.
func (w *world) autoscalers(objects []client.Object) []client.Object {
	if !workload.Autoscaled(w.seed) {
		return nil
	}
	return workload.Autoscalers(objects, func(deployment string) workload.Autoscaling {
		switch {
		case deployment == kubeapiserver.Name:
			return w.cautious()
		case deployment == vpnseedserver.Name && w.shoot.Annotations[constants.ShootAlphaControlPlaneVPNVPAUpdateDisabled] == "true":
			return workload.Autoscaling{UpdateMode: workload.Off}
		}
		return workload.Autoscaling{}
	})
}

// cautious is for pods that users miss while they are replaced. To ask for less is no reason to replace those of important clusters, and
// for the others it can wait for the maintenance time window.
func (w *world) cautious() workload.Autoscaling {
	purpose := deref(w.shoot.Spec.Purpose)
	if purpose == corev1beta1.ShootPurposeProduction || purpose == corev1beta1.ShootPurposeInfrastructure ||
		w.shoot.Annotations[constants.ShootAlphaControlPlaneScaleDownDisabled] == "true" ||
		w.shoot.Spec.Maintenance == nil || w.shoot.Spec.Maintenance.TimeWindow == nil {
		return workload.Autoscaling{Downscale: constants.EvictionRequirementNever}
	}
	return workload.Autoscaling{
		Downscale: constants.EvictionRequirementInMaintenanceWindowOnly, MaintenanceWindow: w.shoot.Spec.Maintenance.TimeWindow,
	}
}

// etcdMinimum is what a Shoot wants an etcd to have at least.
func etcdMinimum(shoot *corev1beta1.Shoot, role etcd.Role) corev1.ResourceList {
	config := shoot.Spec.Kubernetes.ETCD
	if config == nil {
		return nil
	}
	of := config.Main
	if role == etcd.Events {
		of = config.Events
	}
	if of == nil || of.Autoscaling == nil {
		return nil
	}
	return of.Autoscaling.MinAllowed
}
