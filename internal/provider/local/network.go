package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/flannel"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

const (
	// networkType is the type of the Networks that this extension is responsible for.
	networkType = "flannel"
	// networkResource is the name of the ManagedResource with their objects in the shoot.
	networkResource = "extension-networking-flannel"
)

// networks installs flannel in shoots. It uses VXLAN, as machines may be on different nodes of the seed.
type networks struct {
	client client.Client
	image  string
}

// Reconcile applies flannel. It does not wait for it, as the Worker, and with it the first node, is only created after the Network is ready.
func (a *networks) Reconcile(ctx context.Context, network *extensionsv1alpha1.Network, cluster *extension.Cluster) error {
	if err := noConfig(providerConfig, network.Spec.ProviderConfig); err != nil {
		return err
	}
	pods, err := podRanges(network, cluster)
	if err != nil {
		return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	if a.image == "" {
		return errors.New("provider-local is configured without an image of flannel")
	}
	objects, err := flannel.Objects(flannel.Values{Image: a.image, Pods: pods, Backend: flannel.VXLAN, ClusterRole: "gardener.cloud:" + flannel.Name})
	if err != nil {
		return fmt.Errorf("render flannel: %w", err)
	}
	if err := extension.ApplyShoot(ctx, a.client, Name, network.Namespace, networkResource, objects...); err != nil {
		return err
	}
	network.Status.IPFamilies = network.Spec.IPFamilies
	if len(network.Status.IPFamilies) == 0 {
		network.Status.IPFamilies = []extensionsv1alpha1.IPFamily{extensionsv1alpha1.IPFamilyIPv4}
	}
	return nil
}

// podRanges returns the ranges of pods. A Network has a field for that of the first IP family only: the other one, which the infrastructure has chosen, is in
// the Shoot's status.
func podRanges(network *extensionsv1alpha1.Network, cluster *extension.Cluster) ([]netip.Prefix, error) {
	first, err := netip.ParsePrefix(network.Spec.PodCIDR)
	if err != nil || !first.Addr().Is4() {
		return nil, field.Invalid(field.NewPath("spec", "podCIDR"), network.Spec.PodCIDR, "must be an IPv4 network")
	}
	ranges, families := []netip.Prefix{first.Masked()}, network.Spec.IPFamilies
	if len(families) > 0 && families[0] != extensionsv1alpha1.IPFamilyIPv4 {
		return nil, field.NotSupported(field.NewPath("spec", "ipFamilies").Index(0), families[0], []extensionsv1alpha1.IPFamily{extensionsv1alpha1.IPFamilyIPv4})
	}
	if !slices.Contains(families, extensionsv1alpha1.IPFamilyIPv6) {
		return ranges, nil
	}
	if cluster != nil && cluster.Shoot != nil && cluster.Shoot.Status.Networking != nil {
		for _, text := range cluster.Shoot.Status.Networking.Pods {
			if prefix, err := netip.ParsePrefix(text); err == nil && prefix.Addr().Is6() {
				return append(ranges, prefix.Masked()), nil
			}
		}
	}
	return nil, field.Invalid(field.NewPath("spec", "ipFamilies").Index(1), extensionsv1alpha1.IPFamilyIPv6, "the infrastructure has reported no IPv6 network of pods")
}

// Delete removes flannel from the shoot.
func (a *networks) Delete(ctx context.Context, network *extensionsv1alpha1.Network, _ *extension.Cluster) error {
	return extension.DeleteManaged(ctx, a.client, network.Namespace, networkResource)
}

// ForceDelete keeps the objects in the shoot, which is deleted anyway.
func (a *networks) ForceDelete(ctx context.Context, network *extensionsv1alpha1.Network, _ *extension.Cluster) error {
	return extension.ReleaseManaged(ctx, a.client, network.Namespace, networkResource)
}

// Migrate keeps flannel in the shoot.
func (a *networks) Migrate(ctx context.Context, network *extensionsv1alpha1.Network, _ *extension.Cluster) error {
	return extension.ReleaseManaged(ctx, a.client, network.Namespace, networkResource)
}
