package shootvalidator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/cloudprofile"
)

// workers checks the worker pools. A pool may keep settings that the profile does not offer any more.
func workers(in *input) field.ErrorList {
	var errs field.ErrorList
	for i := range in.shoot.Spec.Provider.Workers {
		worker, path := &in.shoot.Spec.Provider.Workers[i], field.NewPath("spec", "provider", "workers").Index(i)
		before := pool(in.old, worker.Name)
		zonesChanged := before == nil || !apiequality.Semantic.DeepEqual(worker.Zones, before.Zones)
		if zonesChanged || worker.Machine.Type != before.Machine.Type || !apiequality.Semantic.DeepEqual(worker.Machine.Architecture,
			before.Machine.Architecture) {
			errs = append(errs, machineType(in, worker, path.Child("machine", "type"))...)
		}
		errs = append(errs, machineImage(in, worker, before, path)...)
		errs = append(errs, zones(in, worker, before, path)...)
		if zonesChanged || worker.Machine.Type != before.Machine.Type || !apiequality.Semantic.DeepEqual(worker.Volume, before.Volume) {
			errs = append(errs, volume(in, worker, path.Child("volume"))...)
		}
		errs = append(errs, reservations(in, worker, path)...)
	}
	return errs
}

// zonesWithout returns the zones of a pool where something is unavailable, by a list that each zone of the region has.
func zonesWithout(in *input, worker *corev1beta1.Worker, name string, unavailable func(*corev1beta1.AvailabilityZone) []string) []string {
	r := cloudprofile.FindRegion(in.profile, in.shoot.Spec.Region)
	if r == nil {
		return nil
	}
	var out []string
	for i := range r.Zones {
		if slices.Contains(worker.Zones, r.Zones[i].Name) && slices.Contains(unavailable(&r.Zones[i]), name) {
			out = append(out, r.Zones[i].Name)
		}
	}
	return out
}

func machineType(in *input, worker *corev1beta1.Worker, path *field.Path) field.ErrorList {
	name := worker.Machine.Type
	found := cloudprofile.FindMachineType(in.profile, name)
	if found == nil {
		var names []string
		for _, t := range in.profile.MachineTypes {
			names = append(names, t.Name)
		}
		return field.ErrorList{field.NotSupported(path, name, names)}
	}
	if found.Usable != nil && !*found.Usable {
		return field.ErrorList{field.Invalid(path, name, "the machine type is not usable")}
	}
	if without := zonesWithout(in, worker, name,
		func(z *corev1beta1.AvailabilityZone) []string { return z.UnavailableMachineTypes }); len(without) > 0 {
		return field.ErrorList{field.Invalid(path, name, "the machine type is unavailable in "+strings.Join(without, ", "))}
	}
	if a := worker.Machine.Architecture; a != nil && *a != cloudprofile.Architecture(found) {
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("machines of this type are %s, not %s",
			cloudprofile.Architecture(found), *a))}
	}
	return nil
}

// machineImage checks that the image is offered and fits the machines, the Kubernetes version and the container runtimes of the
// pool.
func machineImage(in *input, worker, before *corev1beta1.Worker, path *field.Path) field.ErrorList {
	image := worker.Machine.Image
	if image == nil || image.Version == nil {
		return nil
	}
	var was *corev1beta1.ShootMachineImage
	if before != nil {
		was = before.Machine.Image
	}
	sameImage := was != nil && was.Name == image.Name && apiequality.Semantic.DeepEqual(was.Version, image.Version)
	if sameImage && worker.Machine.Type == before.Machine.Type && apiequality.Semantic.DeepEqual(worker.CRI, before.CRI) &&
		apiequality.Semantic.DeepEqual(worker.Machine.Architecture, before.Machine.Architecture) &&
		kubeletVersion(in.shoot, worker) == kubeletVersion(in.old, before) {
		return nil
	}
	found := cloudprofile.FindImage(in.profile, image.Name)
	if found == nil {
		if sameImage {
			return nil
		}
		return field.ErrorList{field.Invalid(path.Child("machine", "image"), image.Name, "the cloud profile has no machine image of this name")}
	}
	if !sameImage {
		offered := usable(cloudprofile.ImageVersions(found), in.now)
		if was != nil && was.Name == image.Name && isNewer(*image.Version, ptr.Deref(was.Version, "")) {
			// A version of Kubernetes on the way to a later one may only have such images.
			offered = append(offered, expired(cloudprofile.ImageVersions(found), in.now)...)
		}
		if errs := oneOf(*image.Version, offered, path.Child("machine", "image", "version")); len(errs) > 0 {
			return errs
		}
	}
	version := cloudprofile.FindImageVersion(in.profile, image.Name, *image.Version)
	if version == nil {
		return nil
	}
	machine := cloudprofile.FindMachineType(in.profile, worker.Machine.Type)
	if a := worker.Machine.Architecture; a != nil && !cloudprofile.RunsOn(in.profile, version, *a, machine) {
		return field.ErrorList{field.Invalid(path.Child("machine", "image"), image.Name+":"+version.Version,
			"the machine image is not made for the machine type and its architecture "+*a)}
	}
	errs := kubeletFits(in, worker, version, path.Child("machine", "image"))
	if !sameImage && was != nil && worker.UpdateStrategy != nil && *worker.UpdateStrategy != corev1beta1.AutoRollingUpdate {
		errs = append(errs, inPlace(was, image, version, path.Child("machine", "image"))...)
	}
	return append(errs, containerRuntimes(worker, version, path.Child("cri"))...)
}

// isNewer reports whether a version of an image is newer than another one. Those that are not in a cloud profile may be anything.
func isNewer(version, than string) bool {
	a, errA := semver.NewVersion(version)
	b, errB := semver.NewVersion(than)
	return errA == nil && errB == nil && a.GreaterThan(b)
}

// kubeletFits checks that an image is made for the kubelet of a pool.
func kubeletFits(in *input, worker *corev1beta1.Worker, version *corev1beta1.MachineImageVersion, path *field.Path) field.ErrorList {
	name := worker.Machine.Image.Name + ":" + version.Version
	if version.KubeletVersionConstraint == nil {
		return nil
	}
	constraint, err := semver.NewConstraint(*version.KubeletVersionConstraint)
	if err != nil {
		return field.ErrorList{field.Invalid(path, name,
			fmt.Sprintf("kubeletVersionConstraint %q of the cloud profile is invalid",
				*version.KubeletVersionConstraint))}
	}
	kubelet := kubeletVersion(in.shoot, worker)
	if parsed, err := semver.NewVersion(kubelet); err != nil || !constraint.Check(parsed) {
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("the machine image is made for Kubernetes %s, not %s",
			*version.KubeletVersionConstraint, kubelet))}
	}
	return nil
}

// inPlace checks that nodes can be updated from one image to another in place.
func inPlace(was, is *corev1beta1.ShootMachineImage, version *corev1beta1.MachineImageVersion, path *field.Path) field.ErrorList {
	updates := version.InPlaceUpdates
	if was.Name != is.Name || updates == nil || !updates.Supported {
		return field.ErrorList{field.Invalid(path, *is.Version, "nodes cannot be updated in place to this machine image")}
	}
	if updates.MinVersionForUpdate == nil || was.Version == nil {
		return nil
	}
	lowest, lowestErr := semver.NewVersion(*updates.MinVersionForUpdate)
	from, fromErr := semver.NewVersion(*was.Version)
	if lowestErr != nil || fromErr != nil || from.LessThan(lowest) {
		return field.ErrorList{field.Invalid(path, *is.Version, fmt.Sprintf("nodes can be updated in place from version %s, not from %s",
			*updates.MinVersionForUpdate, *was.Version))}
	}
	return nil
}

func containerRuntimes(worker *corev1beta1.Worker, version *corev1beta1.MachineImageVersion, path *field.Path) field.ErrorList {
	if worker.CRI == nil {
		return nil
	}
	i := slices.IndexFunc(version.CRI, func(cri corev1beta1.CRI) bool { return cri.Name == worker.CRI.Name })
	if i < 0 {
		return field.ErrorList{field.Invalid(path.Child("name"), worker.CRI.Name, "the machine image does not support it")}
	}
	var errs field.ErrorList
	for j, runtime := range worker.CRI.ContainerRuntimes {
		if !slices.ContainsFunc(version.CRI[i].ContainerRuntimes, func(r corev1beta1.ContainerRuntime) bool { return r.Type == runtime.Type }) {
			errs = append(errs, field.Invalid(path.Child("containerRuntimes").Index(j).Child("type"), runtime.Type,
				"the machine image does not support it"))
		}
	}
	return errs
}

// volume checks the type of the root volume of a pool, and that it is large enough for the type and for the machine. The
// extension checks data volumes.
func volume(in *input, worker *corev1beta1.Worker, path *field.Path) field.ErrorList {
	if worker.Volume == nil {
		return nil
	}
	name, size := worker.Volume.Type, worker.Volume.VolumeSize
	var smallest []*resource.Quantity
	if name != nil {
		found := cloudprofile.FindVolumeType(in.profile, *name)
		if found == nil {
			var names []string
			for _, t := range in.profile.VolumeTypes {
				names = append(names, t.Name)
			}
			return field.ErrorList{field.NotSupported(path.Child("type"), *name, names)}
		}
		if found.Usable != nil && !*found.Usable {
			return field.ErrorList{field.Invalid(path.Child("type"), *name, "the volume type is not usable")}
		}
		without := zonesWithout(in, worker, *name, func(z *corev1beta1.AvailabilityZone) []string { return z.UnavailableVolumeTypes })
		if len(without) > 0 {
			return field.ErrorList{field.Invalid(path.Child("type"), *name, "the volume type is unavailable in "+strings.Join(without, ", "))}
		}
		smallest = append(smallest, found.MinSize)
	}
	if t := cloudprofile.FindMachineType(in.profile, worker.Machine.Type); t != nil && t.Storage != nil {
		smallest = append(smallest, t.Storage.MinSize)
	}
	quantity, err := resource.ParseQuantity(size)
	if err != nil {
		return nil // refused by the checks of the object itself
	}
	for _, s := range smallest {
		if s != nil && quantity.Cmp(*s) < 0 {
			return field.ErrorList{field.Invalid(path.Child("size"), size, "must be at least "+s.String())}
		}
	}
	return nil
}

// reservations checks that not more is reserved on nodes of a pool than machines have.
func reservations(in *input, worker *corev1beta1.Worker, path *field.Path) field.ErrorList {
	if worker.Kubernetes == nil || worker.Kubernetes.Kubelet == nil || worker.Kubernetes.Kubelet.KubeReserved == nil {
		return nil
	}
	reserved := worker.Kubernetes.Kubelet.KubeReserved
	t := cloudprofile.FindMachineType(in.profile, worker.Machine.Type)
	if t == nil {
		return nil
	}
	var errs field.ErrorList
	path = path.Child("kubernetes", "kubelet")
	if reserved.CPU != nil && reserved.CPU.Cmp(t.CPU) > 0 {
		errs = append(errs, field.Invalid(path, reserved.CPU.String(), "must not reserve more CPU than machines have, "+t.CPU.String()))
	}
	if reserved.Memory != nil && reserved.Memory.Cmp(t.Memory) > 0 {
		errs = append(errs, field.Invalid(path, reserved.Memory.String(), "must not reserve more memory than machines have, "+t.Memory.String()))
	}
	return errs
}

// limits checks that all pools together stay within the limits of the profile. A single pool may have a higher maximum: the cluster
// autoscaler keeps to the limit.
func limits(in *input) field.ErrorList {
	if in.profile.Limits == nil || in.profile.Limits.MaxNodesTotal == nil {
		return nil
	}
	limit, total, before := int64(*in.profile.Limits.MaxNodesTotal), int64(0), int64(0)
	for i := range in.shoot.Spec.Provider.Workers {
		total += int64(in.shoot.Spec.Provider.Workers[i].Minimum)
	}
	for i := range in.old.Spec.Provider.Workers {
		before += int64(in.old.Spec.Provider.Workers[i].Minimum)
	}
	if total <= limit || !in.isNew && total <= before {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "provider", "workers"),
		fmt.Sprintf("the pools have at least %d nodes; the cloud profile allows %d", total, limit))}
}
