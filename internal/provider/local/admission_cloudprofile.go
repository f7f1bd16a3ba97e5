package local

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/cloudprofile"
	"gardener.cloud/gardener/pkg/extension/webhook/gardenadmission"
)

// profileAdmission checks the configurations of this provider in cloud profiles: machines are created from the images in them.
type profileAdmission struct {
	garden  client.Reader
	decoder runtime.Decoder
}

// check checks a CloudProfile: each version of a machine image that it offers has images for machines.
func (a *profileAdmission) check(_ context.Context, profile, _ *corev1beta1.CloudProfile) error {
	config := &localv1alpha1.CloudProfileConfig{}
	if errs := gardenadmission.Decode(a.decoder, profile.Spec.ProviderConfig, config, providerConfig); len(errs) > 0 {
		return errs.ToAggregate()
	}
	images := providerConfig.Child("machineImages")
	return append(checkImages(config, images), missingImages(&profile.Spec, profile.Spec.MachineImages, config, images)...).ToAggregate()
}

// checkNamespaced checks a NamespacedCloudProfile: it has images for the versions that it adds to those of its parent, and for no others.
func (a *profileAdmission) checkNamespaced(ctx context.Context, profile, old *corev1beta1.NamespacedCloudProfile) error {
	parent, parentConfig, err := a.parent(ctx, profile)
	if err != nil {
		return err
	}
	config, images := &localv1alpha1.CloudProfileConfig{}, providerConfig.Child("machineImages")
	added := addedImages(profile.Spec.MachineImages, &parent.Spec)
	if len(added) > 0 || profile.Spec.ProviderConfig != nil {
		if errs := gardenadmission.Decode(a.decoder, profile.Spec.ProviderConfig, config, providerConfig); len(errs) > 0 {
			return errs.ToAggregate()
		}
	}
	before := &localv1alpha1.CloudProfileConfig{}
	if old != nil && old.Spec.ProviderConfig != nil {
		_ = json.Unmarshal(old.Spec.ProviderConfig.Raw, before) // an invalid one had no images
	}
	errs := append(checkImages(config, images), missingImages(&parent.Spec, added, config, images)...)
	for i, image := range config.MachineImages {
		for j, version := range image.Versions {
			// If its parent has got the version only later, the profile stays valid. The one of the parent is used.
			if findVersion(parentConfig, image.Name, version.Version) != nil && findVersion(before, image.Name, version.Version) == nil {
				errs = append(errs, field.Forbidden(images.Index(i).Child("versions").Index(j),
					fmt.Sprintf("CloudProfile %q has images for version %s of machine image %q", parent.Name, version.Version, image.Name)))
			}
		}
	}
	return errs.ToAggregate()
}

// parent returns the CloudProfile that a profile extends.
func (a *profileAdmission) parent(
	ctx context.Context, profile *corev1beta1.NamespacedCloudProfile,
) (*corev1beta1.CloudProfile, *localv1alpha1.CloudProfileConfig, error) {
	parent, name := &corev1beta1.CloudProfile{}, profile.Spec.Parent.Name
	if err := a.garden.Get(ctx, client.ObjectKey{Name: name}, parent); apierrors.IsNotFound(err) {
		return nil, nil, field.NotFound(field.NewPath("spec", "parent", "name"), name)
	} else if err != nil {
		return nil, nil, fmt.Errorf("read CloudProfile %q: %w", name, err)
	}
	config, err := profileConfig(parent)
	if err != nil {
		return nil, nil, field.Invalid(field.NewPath("spec", "parent", "name"), name, err.Error())
	}
	return parent, config, nil
}

// addedImages are the versions of machine images that a CloudProfile does not have.
func addedImages(images []corev1beta1.MachineImage, parent *corev1beta1.CloudProfileSpec) []corev1beta1.MachineImage {
	var added []corev1beta1.MachineImage
	for _, image := range images {
		image.Versions = slices.DeleteFunc(slices.Clone(image.Versions), func(v corev1beta1.MachineImageVersion) bool {
			return cloudprofile.FindImageVersion(parent, image.Name, v.Version) != nil
		})
		if len(image.Versions) > 0 {
			added = append(added, image)
		}
	}
	return added
}

// checkImages checks the images of a configuration.
func checkImages(config *localv1alpha1.CloudProfileConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, image := range config.MachineImages {
		at := path.Index(i)
		errs = append(errs, checkUnique(names, image.Name, at.Child("name"))...)
		versions := map[string]bool{}
		for j, version := range image.Versions {
			at := at.Child("versions").Index(j)
			errs = append(errs, checkUnique(versions, version.Version, at.Child("version"))...)
			if version.Image == "" && len(version.CapabilityFlavors) == 0 {
				errs = append(errs, field.Required(at.Child("image"), "machines need an image: here, or in capabilityFlavors"))
			}
			for k, flavor := range version.CapabilityFlavors {
				if flavor.Image == "" {
					errs = append(errs, field.Required(at.Child("capabilityFlavors").Index(k).Child("image"), "machines need an image"))
				}
			}
		}
	}
	return errs
}

// checkUnique checks a name in a list, given those before it.
func checkUnique(before map[string]bool, name string, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "")}
	case before[name]:
		return field.ErrorList{field.Duplicate(path, name)}
	}
	before[name] = true
	return nil
}

// missingImages returns errors for versions of machine images without an image for an architecture that they exist for, or for a machine type that has such an
// architecture. The spec has the capabilities.
func missingImages(
	spec *corev1beta1.CloudProfileSpec, images []corev1beta1.MachineImage, config *localv1alpha1.CloudProfileConfig, path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	for _, image := range images {
		for i := range image.Versions {
			version := image.Versions[i].DeepCopy()
			if len(version.Architectures) == 0 { // the API server does not set the default in a NamespacedCloudProfile
				version.Architectures = []string{defaultArchitecture}
			}
			for _, architecture := range []string{constants.ArchitectureAMD64, constants.ArchitectureARM64} {
				if !cloudprofile.RunsOn(spec, version, architecture, nil) {
					continue
				}
				if imageIn(spec, config, image.Name, version.Version, "", architecture) == nil {
					errs = append(errs, field.Required(path, fmt.Sprintf("version %s of machine image %q needs an image for the architecture %s", version.Version, image.Name, architecture)))
					continue
				}
				for i := range spec.MachineTypes {
					machineType := &spec.MachineTypes[i]
					if cloudprofile.Architecture(machineType) == architecture && cloudprofile.RunsOn(spec, version, architecture, machineType) &&
						imageIn(spec, config, image.Name, version.Version, machineType.Name, architecture) == nil {
						errs = append(errs, field.Required(path, fmt.Sprintf("version %s of machine image %q needs an image for the machine type %s", version.Version, image.Name, machineType.Name)))
					}
				}
			}
		}
	}
	return errs
}

// findVersion returns the images of a version in a configuration, or nil.
func findVersion(config *localv1alpha1.CloudProfileConfig, name, version string) *localv1alpha1.MachineImageVersion {
	for i := range config.MachineImages {
		for j := range config.MachineImages[i].Versions {
			if v := &config.MachineImages[i].Versions[j]; config.MachineImages[i].Name == name && v.Version == version {
				return v
			}
		}
	}
	return nil
}

// mergeStatus adds the images of a NamespacedCloudProfile to those of its parent, which gardener-controller-manager writes to the status: Shoots that use the
// profile get machines with them.
func mergeStatus(_ context.Context, profile, _ *corev1beta1.NamespacedCloudProfile) error {
	merged := profile.Status.CloudProfileSpec
	if profile.Spec.ProviderConfig == nil || merged == nil {
		return nil
	}
	own, err := configOf(profile.Spec.ProviderConfig)
	if err != nil {
		return field.Invalid(providerConfig, field.OmitValueType{}, err.Error())
	}
	config, err := configOf(merged.ProviderConfig)
	if err != nil {
		return field.Invalid(field.NewPath("status", "cloudProfileSpec", "providerConfig"), field.OmitValueType{}, err.Error())
	}
	config.TypeMeta = metav1.TypeMeta{APIVersion: localv1alpha1.SchemeGroupVersion.String(), Kind: "CloudProfileConfig"}
	for _, image := range own.MachineImages {
		for _, version := range image.Versions {
			if findVersion(config, image.Name, version.Version) == nil {
				addVersion(config, image.Name, version)
			}
		}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return err
	}
	merged.ProviderConfig = &runtime.RawExtension{Raw: raw}
	return nil
}

// addVersion adds the images of a version to a configuration.
func addVersion(config *localv1alpha1.CloudProfileConfig, name string, version localv1alpha1.MachineImageVersion) {
	i := slices.IndexFunc(config.MachineImages, func(m localv1alpha1.MachineImages) bool { return m.Name == name })
	if i < 0 {
		i = len(config.MachineImages)
		config.MachineImages = append(config.MachineImages, localv1alpha1.MachineImages{Name: name})
	}
	config.MachineImages[i].Versions = append(config.MachineImages[i].Versions, version)
}
