package shootmutator

import (
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/cloudprofile"
)

// addNetworks sets the default networks of the seed, if they are of an IP family of the shoot.
func addNetworks(spec *corev1beta1.ShootSpec, seed *corev1beta1.Seed) {
	defaults, networking := seed.Spec.Networks.ShootDefaults, spec.Networking
	if defaults == nil || networking == nil {
		return
	}
	if networking.Pods == nil && !spec.Workerless() && ofFamily(defaults.Pods, networking.IPFamilies) {
		networking.Pods = new(*defaults.Pods)
	}
	if networking.Services == nil && ofFamily(defaults.Services, networking.IPFamilies) {
		networking.Services = new(*defaults.Services)
	}
}

func ofFamily(cidr *string, families []corev1beta1.IPFamily) bool {
	if cidr == nil {
		return false
	}
	prefix, err := netip.ParsePrefix(*cidr)
	if err != nil {
		return false
	}
	family := corev1beta1.IPFamilyIPv6
	if prefix.Addr().Is4() {
		family = corev1beta1.IPFamilyIPv4
	}
	return slices.Contains(families, family)
}

// addKubernetesVersions completes versions that name no patch version.
func addKubernetesVersions(spec *corev1beta1.ShootSpec, profile *corev1beta1.CloudProfileSpec, now time.Time) field.ErrorList {
	path := field.NewPath("spec")
	errs := completeVersion(&spec.Kubernetes.Version, profile.Kubernetes.Versions, now, path.Child("kubernetes", "version"))
	for i := range spec.Provider.Workers {
		if k := spec.Provider.Workers[i].Kubernetes; k != nil && k.Version != nil {
			version := *k.Version
			path := path.Child("provider", "workers").Index(i).Child("kubernetes", "version")
			errs = append(errs, completeVersion(&version, profile.Kubernetes.Versions, now, path)...)
			k.Version = &version
		}
	}
	return errs
}

func completeVersion(version *string, offered []corev1beta1.ExpirableVersion, now time.Time, path *field.Path) field.ErrorList {
	wanted, complete, err := cloudprofile.ParseWanted(*version)
	if err != nil {
		return field.ErrorList{field.Invalid(path, *version, err.Error())}
	}
	if complete {
		return nil
	}
	newest := cloudprofile.NewestKubernetes(offered, wanted, now)
	if newest == "" {
		return field.ErrorList{field.Invalid(path, *version, "no version of the cloud profile that is neither expired nor a preview fits")}
	}
	*version = newest
	return nil
}

// addMachines completes architectures and images of worker pools. A pool that has an image keeps it: only maintenance updates it.
func addMachines(spec, old *corev1beta1.ShootSpec, profile *corev1beta1.CloudProfileSpec, now time.Time) field.ErrorList {
	var errs field.ErrorList
	before := map[string]*corev1beta1.ShootMachineImage{}
	for i := range old.Provider.Workers {
		before[old.Provider.Workers[i].Name] = old.Provider.Workers[i].Machine.Image
	}
	for i := range spec.Provider.Workers {
		worker := &spec.Provider.Workers[i]
		machineType := cloudprofile.FindMachineType(profile, worker.Machine.Type)
		if worker.Machine.Architecture == nil {
			architecture := constants.ArchitectureAMD64
			if machineType != nil {
				architecture = cloudprofile.Architecture(machineType)
			}
			worker.Machine.Architecture = &architecture
		}
		image, err := machineImage(worker, before[worker.Name], machineType, profile, now, field.NewPath("spec", "provider", "workers").Index(i))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		worker.Machine.Image = image
	}
	return errs
}

// machineImage returns the image of a pool, in the version to use.
func machineImage(
	worker *corev1beta1.Worker, before *corev1beta1.ShootMachineImage, machineType *corev1beta1.MachineType,
	profile *corev1beta1.CloudProfileSpec, now time.Time, path *field.Path,
) (*corev1beta1.ShootMachineImage, *field.Error) {
	requested := worker.Machine.Image
	if requested == nil {
		if before != nil {
			return before.DeepCopy(), nil
		}
		requested = &corev1beta1.ShootMachineImage{}
	}
	version := ""
	if requested.Version != nil {
		version = *requested.Version
	}
	if before != nil && before.Name == requested.Name && (version == "" || before.Version != nil && *before.Version == version) {
		return &corev1beta1.ShootMachineImage{Name: requested.Name, ProviderConfig: requested.ProviderConfig, Version: before.Version}, nil
	}
	accept := func(v *corev1beta1.MachineImageVersion) bool {
		inPlace := worker.UpdateStrategy != nil && *worker.UpdateStrategy != corev1beta1.AutoRollingUpdate
		return cloudprofile.RunsOn(profile, v, *worker.Machine.Architecture, machineType) &&
			(!inPlace || v.InPlaceUpdates != nil && v.InPlaceUpdates.Supported)
	}
	wanted, complete, err := cloudprofile.ParseWanted(version)
	if err != nil {
		return nil, field.Invalid(path, version, err.Error())
	}
	if complete && requested.Name == "" {
		return requested, nil // validation says that the name is missing
	}
	var image *corev1beta1.MachineImage
	if requested.Name != "" {
		if image = cloudprofile.FindImage(profile, requested.Name); image == nil {
			return nil, field.Invalid(path, requested.Name, "the cloud profile has no machine image of this name")
		}
	} else {
		i := slices.IndexFunc(profile.MachineImages, func(m corev1beta1.MachineImage) bool {
			return slices.ContainsFunc(m.Versions, func(v corev1beta1.MachineImageVersion) bool { return accept(&v) })
		})
		if i < 0 {
			return nil, field.Invalid(path, *worker.Machine.Architecture, "the cloud profile has no machine image for machines of this architecture")
		}
		image = &profile.MachineImages[i]
	}
	if !complete {
		if version = cloudprofile.NewestImage(image, wanted, now, accept); version == "" {
			return nil, field.Invalid(path, image.Name, "no version of the machine image that is neither expired nor a preview fits the pool")
		}
	}
	return &corev1beta1.ShootMachineImage{Name: image.Name, ProviderConfig: requested.ProviderConfig, Version: &version}, nil
}
