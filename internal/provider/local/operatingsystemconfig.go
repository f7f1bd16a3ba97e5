package local

import (
	"context"
	_ "embed"
	"fmt"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
)

// operatingSystemConfigs are those of the library: the user data of new machines is a shell script. They add nothing to what the gardener-node-agent
// applies, except for a shared disk.
type operatingSystemConfigs struct{ generic.OperatingSystemConfig }

// addressesScript is where a machine has the script that names its addresses to the kubelet.
const addressesScript = "/opt/bin/kubelet-addresses"

//go:embed kubelet_addresses.sh
var addressesContent string

// Reconcile renders the user data, if it is for new machines. Otherwise it adds the kubelet's settings for a shared disk, and its addresses in a dual-stack
// cluster.
func (a *operatingSystemConfigs) Reconcile(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig, cluster *extension.Cluster) error {
	if err := noConfig(providerConfig, osc.Spec.ProviderConfig); err != nil {
		return err
	}
	if osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
		files, err := kubeletOnSharedDisk(osc.Spec.Files)
		if err != nil {
			return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
		}
		osc.Status.ExtensionFiles, osc.Status.ExtensionUnits = files, nil
		if cluster != nil && dualStack(cluster.Shoot) {
			file, unit := kubeletAddresses()
			osc.Status.ExtensionFiles = append(osc.Status.ExtensionFiles, file)
			osc.Status.ExtensionUnits = []extensionsv1alpha1.Unit{unit}
		}
		osc.Status.InPlaceUpdates = systemUpdate(osc.Spec.InPlaceUpdates)
		return nil
	}
	return a.OperatingSystemConfig.Reconcile(ctx, osc, cluster)
}

// kubeletAddresses returns a file and a drop-in of the kubelet's unit with which it has an address of each IP family.
func kubeletAddresses() (extensionsv1alpha1.File, extensionsv1alpha1.Unit) {
	file := extensionsv1alpha1.File{
		Path: addressesScript, Permissions: new(uint32(0o755)),
		Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: addressesContent}},
	}
	return file, extensionsv1alpha1.Unit{
		Name: extensionsv1alpha1.OperatingSystemConfigUnitNameKubeletService, FilePaths: []string{addressesScript},
		DropIns: []extensionsv1alpha1.DropIn{{
			Name: "10-addresses.conf", Content: "[Service]\nExecStartPre=" + addressesScript + "\nEnvironmentFile=-/run/kubelet-addresses\n",
		}},
	}
}

// systemUpdate is how the operating system of a machine is updated in place. Machines share the kernel and their image with the seed, so only the version
// changes that the machine reports.
func systemUpdate(desired *extensionsv1alpha1.InPlaceUpdates) *extensionsv1alpha1.InPlaceUpdatesStatus {
	if desired == nil {
		return nil
	}
	name := fmt.Sprintf(`PRETTY_NAME="Machine Image Version %s (local)"`, desired.OperatingSystemVersion)
	return &extensionsv1alpha1.InPlaceUpdatesStatus{OSUpdate: &extensionsv1alpha1.OSUpdate{
		Command: "sed", Args: []string{"-i", "-E", `s/^PRETTY_NAME=.*/` + name + `/`, "/etc/os-release"},
	}}
}
