package local

import (
	"context"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// checkShoot checks what a Shoot of this provider says to it: about its infrastructure, its control plane, its machines and their operating system.
func checkShoot(_ context.Context, shoot, _ *corev1beta1.Shoot) error {
	provider, path := &shoot.Spec.Provider, field.NewPath("spec", "provider")
	errs := slices.Concat(
		unknownConfig(path.Child("infrastructureConfig"), provider.InfrastructureConfig),
		unknownConfig(path.Child("controlPlaneConfig"), provider.ControlPlaneConfig),
	)
	for i := range provider.Workers {
		worker, at := &provider.Workers[i], path.Child("workers").Index(i)
		errs = append(errs, unknownConfig(at.Child("providerConfig"), worker.ProviderConfig)...)
		if image := worker.Machine.Image; image != nil && image.Name == Type {
			errs = append(errs, unknownConfig(at.Child("machine", "image", "providerConfig"), image.ProviderConfig)...)
		}
	}
	return errs.ToAggregate()
}

// checkNetworks checks the networks of a Shoot with flannel, whatever its provider.
func checkNetworks(_ context.Context, shoot, _ *corev1beta1.Shoot) error {
	networking, path := shoot.Spec.Networking, field.NewPath("spec", "networking")
	if networking == nil || ptr.Deref(networking.Type, "") != networkType {
		return nil // only the old object had it
	}
	errs := unknownConfig(path.Child("providerConfig"), networking.ProviderConfig)
	if families := networking.IPFamilies; len(families) > 0 && families[0] != corev1beta1.IPFamilyIPv4 { // IPv6 can be added to it
		errs = append(errs, field.NotSupported(path.Child("ipFamilies").Index(0), families[0], []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4}))
	}
	if pods := networking.Pods; pods != nil {
		if network, err := netip.ParsePrefix(*pods); err != nil || !network.Addr().Is4() {
			errs = append(errs, field.Invalid(path.Child("pods"), *pods, "must be an IPv4 network"))
		}
	}
	return errs.ToAggregate()
}

// checkContainerRuntimes checks the machines of a Shoot that have crun, whatever its provider.
func checkContainerRuntimes(_ context.Context, shoot, _ *corev1beta1.Shoot) error {
	var errs field.ErrorList
	for i, worker := range shoot.Spec.Provider.Workers {
		if worker.CRI == nil {
			continue
		}
		for j, containerRuntime := range worker.CRI.ContainerRuntimes {
			if containerRuntime.Type == runtimeType {
				path := field.NewPath("spec", "provider", "workers").Index(i).Child("cri", "containerRuntimes").Index(j)
				errs = append(errs, unknownConfig(path.Child("providerConfig"), containerRuntime.ProviderConfig)...)
			}
		}
	}
	return errs.ToAggregate()
}

// checkSeed checks the backups of a Seed, whose BackupBucket gets the configuration.
func checkSeed(_ context.Context, seed, _ *corev1beta1.Seed) error {
	if backup := seed.Spec.Backup; backup != nil && backup.Provider == Type {
		return unknownConfig(field.NewPath("spec", "backup", "providerConfig"), backup.ProviderConfig).ToAggregate()
	}
	return nil
}

// checkBackupBucket checks a BackupBucket that a user creates.
func checkBackupBucket(_ context.Context, bucket, _ *corev1beta1.BackupBucket) error {
	return unknownConfig(providerConfig, bucket.Spec.ProviderConfig).ToAggregate()
}
