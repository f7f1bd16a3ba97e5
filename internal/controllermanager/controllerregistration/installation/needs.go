package installation

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/dnsname"
)

// need is a kind and type of extension resources, such as Infrastructure/local, for which a cluster needs a controller.
type need struct{ kind, typ string }

func (n need) String() string { return n.kind + "/" + n.typ }

// needs are the kinds and types of extension resources of a cluster.
type needs struct{ sets.Set[need] }

func (n needs) add(typ string, kinds ...string) {
	if typ == "" {
		return
	}
	for _, kind := range kinds {
		n.Insert(need{kind, typ})
	}
}

func (n needs) addDNS(provider string) {
	if provider != constants.DNSProviderUnmanaged {
		n.add(provider, extensionsv1alpha1.DNSRecordResource)
	}
}

func (n needs) addBackup(backup *corev1beta1.Backup) {
	if backup != nil {
		n.add(backup.Provider, extensionsv1alpha1.BackupBucketResource, extensionsv1alpha1.BackupEntryResource)
	}
}

// domain is a DNS domain and the type of provider that manages it.
type domain struct{ name, provider string }

// domains are the internal and default domains of a garden or seed.
type domains struct {
	internal []domain
	defaults []domain
}

// forSeed returns the domains for the shoots of a seed: its own, or those of the garden if it has none.
func (d domains) forSeed(seed *corev1beta1.Seed) domains {
	if own := seed.Spec.DNS.Internal; own != nil {
		d.internal = []domain{{own.Domain, own.Type}}
	}
	if own := seed.Spec.DNS.Defaults; len(own) > 0 {
		d.defaults = nil
		for _, config := range own {
			d.defaults = append(d.defaults, domain{config.Domain, config.Type})
		}
	}
	return d
}

// automatic is a type of Extension that is enabled without being in the spec.
type automatic struct {
	typ        string
	workerless bool // whether it supports shoots without workers
}

// addExtensions adds the Extensions in the spec of a cluster, and the automatic ones that it does not disable.
func (n needs) addExtensions(specified []corev1beta1.Extension, automatics []automatic, workerless bool) {
	disabled := func(typ string) bool {
		for i := range specified {
			if specified[i].Type == typ && ptr.Deref(specified[i].Disabled, false) {
				return true
			}
		}
		return false
	}
	for i := range specified {
		if !ptr.Deref(specified[i].Disabled, false) {
			n.add(specified[i].Type, extensionsv1alpha1.ExtensionResource)
		}
	}
	for _, extension := range automatics {
		if (!workerless || extension.workerless) && !disabled(extension.typ) {
			n.add(extension.typ, extensionsv1alpha1.ExtensionResource)
		}
	}
}

// addSeed adds what a seed needs for itself, with or without shoots.
func (n needs) addSeed(seed *corev1beta1.Seed, automatics []automatic) {
	n.add(seed.Spec.Provider.Type, extensionsv1alpha1.ControlPlaneResource, extensionsv1alpha1.InfrastructureResource, extensionsv1alpha1.WorkerResource)
	n.addBackup(seed.Spec.Backup)
	if provider := seed.Spec.DNS.Provider; provider != nil {
		n.addDNS(provider.Type)
	}
	for _, d := range (domains{}).forSeed(seed).all() {
		n.addDNS(d.provider)
	}
	n.addExtensions(seed.Spec.Extensions, automatics, false)
}

func (d domains) all() []domain {
	return append(d.internal[:len(d.internal):len(d.internal)], d.defaults...)
}

// addShoot adds what a shoot needs in the seed that hosts its control plane. The domains are those of the seed.
func (n needs) addShoot(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, d domains, automatics []automatic) {
	n.addBackup(seed.Spec.Backup)
	// The provider of the seed exposes the control plane, whatever the infrastructure of the shoot is.
	n.add(seed.Spec.Provider.Type, extensionsv1alpha1.ControlPlaneResource)
	if !shoot.Workerless() {
		n.add(shoot.Spec.Provider.Type, extensionsv1alpha1.ControlPlaneResource, extensionsv1alpha1.InfrastructureResource, extensionsv1alpha1.WorkerResource)
	}
	for _, internal := range d.internal {
		n.addDNS(internal.provider)
	}
	n.addCluster(shoot, d.defaults, automatics)
}

// addSelfHosted adds what a self-hosted shoot needs.
func (n needs) addSelfHosted(shoot *corev1beta1.Shoot, defaults []domain, automatics []automatic) {
	n.add(shoot.Spec.Provider.Type, extensionsv1alpha1.ControlPlaneResource)
	// Without credentials, the machines are not managed by Gardener.
	if shoot.Spec.CredentialsBindingName != nil || shoot.Spec.SecretBindingName != nil { //nolint:staticcheck // Shoots without a CredentialsBinding have one
		n.add(shoot.Spec.Provider.Type, extensionsv1alpha1.InfrastructureResource, extensionsv1alpha1.WorkerResource)
	}
	for i := range shoot.Spec.Provider.Workers {
		controlPlane := shoot.Spec.Provider.Workers[i].ControlPlane
		if controlPlane == nil {
			continue
		}
		n.addBackup(controlPlane.Backup)
		if exposure := controlPlane.Exposure; exposure != nil && exposure.Extension != nil {
			n.add(ptr.Deref(exposure.Extension.Type, shoot.Spec.Provider.Type), extensionsv1alpha1.SelfHostedShootExposureResource)
		}
	}
	n.addCluster(shoot, defaults, automatics)
}

// addCluster adds what every shoot needs, wherever its control plane is.
func (n needs) addCluster(shoot *corev1beta1.Shoot, defaults []domain, automatics []automatic) {
	workers := shoot.Spec.Provider.Workers
	if networking := shoot.Spec.Networking; networking != nil && networking.Type != nil && len(workers) > 0 {
		n.add(*networking.Type, extensionsv1alpha1.NetworkResource)
	}
	for i := range workers {
		if image := workers[i].Machine.Image; image != nil {
			n.add(image.Name, extensionsv1alpha1.OperatingSystemConfigResource)
		}
		if cri := workers[i].CRI; cri != nil {
			for j := range cri.ContainerRuntimes {
				n.add(cri.ContainerRuntimes[j].Type, extensionsv1alpha1.ContainerRuntimeResource)
			}
		}
	}
	n.addDNS(externalProvider(shoot, defaults))
	n.addExtensions(shoot.Spec.Extensions, automatics, len(workers) == 0)
}

// externalProvider returns the type of the DNS provider for the domain of a shoot: its primary provider, or else that of the default domain
// which its domain belongs to.
func externalProvider(shoot *corev1beta1.Shoot, defaults []domain) string {
	dns := shoot.Spec.DNS
	if dns == nil {
		return ""
	}
	for i := range dns.Providers { //nolint:staticcheck // the primary provider is still used
		if provider := &dns.Providers[i]; ptr.Deref(provider.Primary, false) && provider.Type != nil { //nolint:staticcheck // the primary provider is still used
			return *provider.Type
		}
	}
	provider, closest := "", ""
	for _, d := range defaults {
		if dnsname.Within(dnsname.Of(dns), d.name) && len(d.name) > len(closest) {
			provider, closest = d.provider, d.name
		}
	}
	return provider
}

// addBackups adds what the buckets and entries of a cluster need. The buckets of entries can belong to another cluster.
func (n needs) addBackups(buckets []corev1beta1.BackupBucket, entries []corev1beta1.BackupEntry, bucketProvider func(name string) string) {
	for i := range buckets {
		n.add(buckets[i].Spec.Provider.Type, extensionsv1alpha1.BackupBucketResource)
	}
	for i := range entries {
		n.add(bucketProvider(entries[i].Spec.BucketName), extensionsv1alpha1.BackupEntryResource)
	}
}

// automatics returns the types of Extension that registrations enable for clusters of a type.
func automatics(registrations []corev1beta1.ControllerRegistration, cluster corev1beta1.ClusterType) []automatic {
	var result []automatic
	for i := range registrations {
		for _, resource := range registrations[i].Spec.Resources {
			if resource.Kind != extensionsv1alpha1.ExtensionResource {
				continue
			}
			for _, typ := range resource.AutoEnable {
				if typ == cluster {
					result = append(result, automatic{resource.Type, ptr.Deref(resource.WorkerlessSupported, false)})
				}
			}
		}
	}
	return result
}
