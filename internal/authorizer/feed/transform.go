package feed

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ByObject are the options of a cache with the informers: they keep of large objects what the graph and the webhooks read.
func ByObject() map[client.Object]cache.ByObject {
	keep := func(shrink func(client.Object)) cache.ByObject {
		return cache.ByObject{Transform: transform(shrink)}
	}
	return map[client.Object]cache.ByObject{
		&corev1beta1.Shoot{}: keep(func(obj client.Object) { shrinkShoot(obj.(*corev1beta1.Shoot)) }),
		&corev1beta1.BackupEntry{}: keep(func(obj client.Object) {
			entry := obj.(*corev1beta1.BackupEntry)
			entry.Status = corev1beta1.BackupEntryStatus{SeedName: entry.Status.SeedName}
		}),
		&gardencorev1.ControllerDeployment{}: keep(func(obj client.Object) {
			deployment := obj.(*gardencorev1.ControllerDeployment)
			if deployment.Helm != nil {
				deployment.Helm.RawChart, deployment.Helm.Values = nil, nil
			}
		}),
		&corev1beta1.ControllerInstallation{}: keep(func(obj client.Object) {
			obj.(*corev1beta1.ControllerInstallation).Status = corev1beta1.ControllerInstallationStatus{}
		}),
		&corev1beta1.Seed{}: keep(func(obj client.Object) {
			seed := obj.(*corev1beta1.Seed)
			seed.Status = corev1beta1.SeedStatus{ClientCertificateExpirationTimestamp: seed.Status.ClientCertificateExpirationTimestamp}
		}),
		&certificatesv1.CertificateSigningRequest{}: keep(func(obj client.Object) {
			obj.(*certificatesv1.CertificateSigningRequest).Status = certificatesv1.CertificateSigningRequestStatus{}
		}),
		&corev1.ServiceAccount{}: keep(func(obj client.Object) {
			obj.SetLabels(nil)
			obj.SetAnnotations(nil)
		}),
	}
}

// transform removes managed fields, and what else is not needed.
func transform(shrink func(client.Object)) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		object, ok := obj.(client.Object)
		if !ok {
			return obj, nil // a tombstone
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		accessor.SetManagedFields(nil)
		shrink(object)
		return object, nil
	}
}

// shrinkShoot keeps names of other objects, the settings of the kube-apiserver, and which seeds and operations there are.
func shrinkShoot(shoot *corev1beta1.Shoot) {
	spec, status := shoot.Spec, &shoot.Status
	shoot.Spec = corev1beta1.ShootSpec{
		SeedName: spec.SeedName, ExposureClassName: spec.ExposureClassName,
		CredentialsBindingName: spec.CredentialsBindingName,
		SecretBindingName:      spec.SecretBindingName, //nolint:staticcheck // Shoots without a CredentialsBinding have one
		CloudProfile:           spec.CloudProfile,
		CloudProfileName:       spec.CloudProfileName, //nolint:staticcheck // old Shoots have it
		Kubernetes:             corev1beta1.Kubernetes{Version: spec.Kubernetes.Version, KubeAPIServer: spec.Kubernetes.KubeAPIServer},
		DNS:                    spec.DNS, Resources: spec.Resources,
	}
	for _, worker := range spec.Provider.Workers {
		if worker.ControlPlane != nil { // it is self-hosted
			shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, corev1beta1.Worker{ControlPlane: worker.ControlPlane})
		}
	}
	shoot.Status = corev1beta1.ShootStatus{
		SeedName: status.SeedName, LastOperation: status.LastOperation, AdvertisedAddresses: status.AdvertisedAddresses, UID: status.UID,
	}
}
