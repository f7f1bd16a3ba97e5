package resourcereferencemanager

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// version is something in a cloud profile that Shoots can use.
type version struct {
	// image is the name of a machine image, or empty for Kubernetes.
	image, version string
}

func (v version) String() string {
	if v.image == "" {
		return "Kubernetes " + v.version
	}
	return "machine image " + v.image + " " + v.version
}

// offered returns the versions in a CloudProfile.
func offered(spec *corev1beta1.CloudProfileSpec) sets.Set[version] {
	return versionsOf(spec.Kubernetes.Versions, spec.MachineImages)
}

func versionsOf(kubernetes []corev1beta1.ExpirableVersion, images []corev1beta1.MachineImage) sets.Set[version] {
	out := sets.New[version]()
	for _, v := range kubernetes {
		out.Insert(version{version: v.Version})
	}
	for _, image := range images {
		for _, v := range image.Versions {
			out.Insert(version{image: image.Name, version: v.Version})
		}
	}
	return out
}

// ownVersions returns the versions that a NamespacedCloudProfile adds or extends.
func ownVersions(profile *corev1beta1.NamespacedCloudProfile) sets.Set[version] {
	var kubernetes []corev1beta1.ExpirableVersion
	if profile.Spec.Kubernetes != nil {
		kubernetes = profile.Spec.Kubernetes.Versions
	}
	return versionsOf(kubernetes, profile.Spec.MachineImages)
}

// used returns the versions that a Shoot uses.
func used(shoot *corev1beta1.Shoot) sets.Set[version] {
	out := sets.New(version{version: shoot.Spec.Kubernetes.Version})
	for _, worker := range shoot.Spec.Provider.Workers {
		if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
			out.Insert(version{version: *worker.Kubernetes.Version})
		}
		if image := worker.Machine.Image; image != nil && image.Version != nil {
			out.Insert(version{image: image.Name, version: *image.Version})
		}
	}
	return out
}

// checkCloudProfile refuses to remove versions that Shoots use, directly or through a NamespacedCloudProfile.
func (p *Plugin) checkCloudProfile(ctx context.Context, a admission.Attributes, profile, old *corev1beta1.CloudProfile) error {
	removed := offered(&old.Spec).Difference(offered(&profile.Spec))
	if removed.Len() == 0 {
		return nil
	}
	if err := p.unused(ctx, a, removed, "CloudProfile", client.ObjectKeyFromObject(profile)); err != nil {
		return err
	}
	children := &corev1beta1.NamespacedCloudProfileList{}
	if err := p.GardenCache.List(ctx, children); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list NamespacedCloudProfiles: %w", err))
	}
	for i := range children.Items {
		child := &children.Items[i]
		if child.Spec.Parent.Name != profile.Name {
			continue
		}
		if err := p.unused(ctx, a, removed, "NamespacedCloudProfile", client.ObjectKeyFromObject(child)); err != nil {
			return err
		}
	}
	return nil
}

// checkNamespacedCloudProfile refuses to remove versions that Shoots use and that the parent does not offer, or that have expired there.
func (p *Plugin) checkNamespacedCloudProfile(ctx context.Context, a admission.Attributes, profile, old *corev1beta1.NamespacedCloudProfile) error {
	removed := ownVersions(old).Difference(ownVersions(profile))
	if removed.Len() == 0 {
		return nil
	}
	parent := &corev1beta1.CloudProfile{}
	if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: profile.Spec.Parent.Name}, parent); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("read CloudProfile %q: %w", profile.Spec.Parent.Name, err))
	}
	return p.unused(ctx, a, removed.Difference(unexpired(&parent.Spec, p.clock.Now())), "NamespacedCloudProfile", client.ObjectKeyFromObject(profile))
}

// unexpired returns the versions in a CloudProfile that have not expired.
func unexpired(spec *corev1beta1.CloudProfileSpec, now time.Time) sets.Set[version] {
	out := sets.New[version]()
	for _, v := range spec.Kubernetes.Versions {
		if v.ClassificationAt(now) != corev1beta1.ClassificationExpired {
			out.Insert(version{version: v.Version})
		}
	}
	for _, image := range spec.MachineImages {
		for _, v := range image.Versions {
			if v.ClassificationAt(now) != corev1beta1.ClassificationExpired {
				out.Insert(version{image: image.Name, version: v.Version})
			}
		}
	}
	return out
}

// unused returns an error if Shoots of a profile use one of some versions. Shoots in deletion do not count.
func (p *Plugin) unused(ctx context.Context, a admission.Attributes, versions sets.Set[version], kind string, profile client.ObjectKey) error {
	if versions.Len() == 0 {
		return nil
	}
	shoots := &corev1beta1.ShootList{}
	err := p.GardenCache.List(ctx, shoots, client.InNamespace(profile.Namespace), client.MatchingFields{"spec.cloudProfile.Name": profile.Name}, initializer.Fresh)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list Shoots: %w", err))
	}
	var users []string
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		if shoot.DeletionTimestamp != nil || cmp.Or(shoot.Spec.CloudProfile.Kind, "CloudProfile") != kind {
			continue
		}
		for v := range used(shoot).Intersection(versions) {
			users = append(users, fmt.Sprintf("%s uses %s", client.ObjectKeyFromObject(shoot), v))
		}
	}
	if len(users) == 0 {
		return nil
	}
	slices.Sort(users)
	return admission.NewForbidden(a, fmt.Errorf("what would be removed is in use: %s", listed(users)))
}
