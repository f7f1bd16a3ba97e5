// Package cloudprofile finds the profile of a Shoot and what it offers.
//
// Reads CloudProfiles and NamespacedCloudProfiles of the garden.
package cloudprofile

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Reference returns the profile that a shoot refers to, under the new or the old name of the field; nil without one.
func Reference(spec *corev1beta1.ShootSpec) *corev1beta1.CloudProfileReference {
	switch name := spec.CloudProfileName; { //nolint:staticcheck // old Shoots have this one only
	case spec.CloudProfile != nil:
		ref := *spec.CloudProfile
		if ref.Kind == "" {
			ref.Kind = constants.CloudProfileReferenceKindCloudProfile
		}
		return &ref
	case name != nil && *name != "":
		return &corev1beta1.CloudProfileReference{Kind: constants.CloudProfileReferenceKindCloudProfile, Name: *name}
	}
	return nil
}

// Spec returns what the profile of a shoot offers; nil if the shoot refers to none. It is shared: do not change it.
func Spec(ctx context.Context, garden client.Reader, shoot *corev1beta1.Shoot) (*corev1beta1.CloudProfileSpec, error) {
	ref := Reference(&shoot.Spec)
	if ref == nil {
		return nil, nil
	}
	return specOf(ctx, garden, shoot.Namespace, *ref)
}

func specOf(
	ctx context.Context, garden client.Reader, namespace string, ref corev1beta1.CloudProfileReference) (*corev1beta1.CloudProfileSpec, error,
) {
	switch ref.Kind {
	case constants.CloudProfileReferenceKindCloudProfile:
		profile := &corev1beta1.CloudProfile{}
		if err := garden.Get(ctx, client.ObjectKey{Name: ref.Name}, profile); err != nil {
			return nil, fmt.Errorf("read CloudProfile %q: %w", ref.Name, err)
		}
		return &profile.Spec, nil
	case constants.CloudProfileReferenceKindNamespacedCloudProfile:
		profile := &corev1beta1.NamespacedCloudProfile{}
		if err := garden.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, profile); err != nil {
			return nil, fmt.Errorf("read NamespacedCloudProfile %q: %w", ref.Name, err)
		}
		if profile.Status.CloudProfileSpec == nil || profile.Status.CloudProfileSpec.Type == "" {
			return nil, fmt.Errorf("NamespacedCloudProfile %q is not merged with its parent yet; try again in a moment", ref.Name)
		}
		return profile.Status.CloudProfileSpec, nil
	}
	return nil, fmt.Errorf("%q is no kind of cloud profile", ref.Kind)
}

// CheckChange returns an error if a shoot cannot change from its old profile to the one it refers to now. Both must go back to
// the same CloudProfile, and the new one must offer what the shoot uses.
func CheckChange(ctx context.Context, garden client.Reader, shoot, old *corev1beta1.Shoot) error {
	now, then := Reference(&shoot.Spec), Reference(&old.Spec)
	if now == nil || then == nil || apiequality.Semantic.DeepEqual(now, then) {
		return nil
	}
	rootNow, err := root(ctx, garden, shoot.Namespace, *now)
	if err != nil {
		return err
	}
	rootThen, err := root(ctx, garden, old.Namespace, *then)
	if err != nil {
		return err
	}
	if rootNow != rootThen {
		return fmt.Errorf("cannot change from %s %q to %s %q, as they do not go back to the same CloudProfile", then.Kind, then.Name,
			now.Kind, now.Name)
	}
	spec, err := specOf(ctx, garden, shoot.Namespace, *now)
	if err != nil {
		return err
	}
	if missing := notOffered(&old.Spec, spec); missing != "" {
		return fmt.Errorf("cannot change to %s %q, as it does not offer %s, which is in use", now.Kind, now.Name, missing)
	}
	return nil
}

// root returns the name of the CloudProfile that a profile goes back to.
func root(ctx context.Context, garden client.Reader, namespace string, ref corev1beta1.CloudProfileReference) (string, error) {
	if ref.Kind != constants.CloudProfileReferenceKindNamespacedCloudProfile {
		return ref.Name, nil
	}
	profile := &corev1beta1.NamespacedCloudProfile{}
	if err := garden.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, profile); err != nil {
		// Not wrapped: its code would become that of the answer.
		return "", fmt.Errorf("read NamespacedCloudProfile %q: %v", ref.Name, err) //nolint:errorlint // see above
	}
	return profile.Spec.Parent.Name, nil
}

// notOffered names something that a shoot uses and a profile does not offer; "" if there is nothing.
func notOffered(shoot *corev1beta1.ShootSpec, profile *corev1beta1.CloudProfileSpec) string {
	versions := map[string]bool{}
	for _, version := range profile.Kubernetes.Versions {
		versions[version.Version] = true
	}
	if !versions[shoot.Kubernetes.Version] {
		return fmt.Sprintf("Kubernetes %s", shoot.Kubernetes.Version)
	}
	for i := range shoot.Provider.Workers {
		worker := &shoot.Provider.Workers[i]
		if k := worker.Kubernetes; k != nil && k.Version != nil && !versions[*k.Version] {
			return fmt.Sprintf("Kubernetes %s", *k.Version)
		}
		if FindMachineType(profile, worker.Machine.Type) == nil {
			return fmt.Sprintf("the machine type %q", worker.Machine.Type)
		}
		if image := worker.Machine.Image; image != nil && image.Version != nil && FindImageVersion(profile, image.Name, *image.Version) == nil {
			return fmt.Sprintf("version %s of the machine image %q", *image.Version, image.Name)
		}
		if v := worker.Volume; v != nil && v.Type != nil && FindVolumeType(profile, *v.Type) == nil {
			return fmt.Sprintf("the volume type %q", *v.Type)
		}
	}
	return ""
}

// FindMachineType returns a machine type by its name, or nil.
func FindMachineType(profile *corev1beta1.CloudProfileSpec, name string) *corev1beta1.MachineType {
	for i := range profile.MachineTypes {
		if profile.MachineTypes[i].Name == name {
			return &profile.MachineTypes[i]
		}
	}
	return nil
}

// FindVolumeType returns a volume type by its name, or nil.
func FindVolumeType(profile *corev1beta1.CloudProfileSpec, name string) *corev1beta1.VolumeType {
	for i := range profile.VolumeTypes {
		if profile.VolumeTypes[i].Name == name {
			return &profile.VolumeTypes[i]
		}
	}
	return nil
}

// FindRegion returns a region by its name, or nil.
func FindRegion(profile *corev1beta1.CloudProfileSpec, name string) *corev1beta1.Region {
	for i := range profile.Regions {
		if profile.Regions[i].Name == name {
			return &profile.Regions[i]
		}
	}
	return nil
}

// FindImage returns a machine image by its name, or nil.
func FindImage(profile *corev1beta1.CloudProfileSpec, name string) *corev1beta1.MachineImage {
	for i := range profile.MachineImages {
		if profile.MachineImages[i].Name == name {
			return &profile.MachineImages[i]
		}
	}
	return nil
}

// FindImageVersion returns a version of a machine image, or nil.
func FindImageVersion(profile *corev1beta1.CloudProfileSpec, name, version string) *corev1beta1.MachineImageVersion {
	image := FindImage(profile, name)
	if image == nil {
		return nil
	}
	for i := range image.Versions {
		if image.Versions[i].Version == version {
			return &image.Versions[i]
		}
	}
	return nil
}
