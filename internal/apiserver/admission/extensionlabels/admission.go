// Package extensionlabels labels objects with the types of the extensions that they need, so that the webhooks of an extension can
// select them.
//
// A label is {what}.extensions.gardener.cloud/{type}=true. Labels of this form that do not belong to an object are removed.
package extensionlabels

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "ExtensionLabels"

// prefixes are those of the labels that the plugin sets and removes.
var prefixes = []string{
	constants.ExtensionExtensionTypePrefix, constants.ExtensionProviderTypePrefix, constants.ExtensionDNSRecordTypePrefix,
	constants.ExtensionNetworkingTypePrefix, constants.ExtensionOperatingSystemConfigTypePrefix,
	constants.ExtensionContainerRuntimeTypePrefix, constants.ExtensionSelfHostedShootExposureTypePrefix,
}

// unmanaged is the type of DNS providers for which no DNSRecords are created.
const unmanaged = "unmanaged"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Plugin sets labels. Reads CloudProfiles, BackupBuckets and ControllerRegistrations.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	obj, ok := a.GetObject().(client.Object)
	if !ok {
		return nil
	}
	wanted := labels{}
	var err error
	switch o := obj.(type) {
	case *corev1beta1.Seed:
		err = p.ofSeed(ctx, o, wanted)
	case *corev1beta1.Shoot:
		err = p.ofShoot(ctx, o, wanted)
	case *corev1beta1.SecretBinding:
		if o.Provider != nil {
			// A secret may be for several providers.
			for _, providerType := range strings.Split(o.Provider.Type, ",") {
				wanted.add(constants.ExtensionProviderTypePrefix, providerType)
			}
		}
	case *corev1beta1.CloudProfile:
		wanted.add(constants.ExtensionProviderTypePrefix, o.Spec.Type)
	case *corev1beta1.NamespacedCloudProfile:
		err = p.ofNamespacedCloudProfile(ctx, o, wanted)
	case *corev1beta1.BackupBucket:
		wanted.add(constants.ExtensionProviderTypePrefix, o.Spec.Provider.Type)
	case *corev1beta1.BackupEntry:
		bucket := &corev1beta1.BackupBucket{}
		if err = p.GardenCache.Get(ctx, client.ObjectKey{Name: o.Spec.BucketName}, bucket); err != nil {
			err = fmt.Errorf("read BackupBucket %q: %w", o.Spec.BucketName, err)
		}
		wanted.add(constants.ExtensionProviderTypePrefix, bucket.Spec.Provider.Type)
	case *securityv1alpha1.CredentialsBinding:
		wanted.add(constants.ExtensionProviderTypePrefix, o.Provider.Type)
	case *securityv1alpha1.WorkloadIdentity:
		wanted.add(constants.ExtensionProviderTypePrefix, o.Spec.TargetSystem.Type)
	default:
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	wanted.set(obj)
	return nil
}

func (p *Plugin) ofSeed(ctx context.Context, seed *corev1beta1.Seed, wanted labels) error {
	wanted.add(constants.ExtensionProviderTypePrefix, seed.Spec.Provider.Type)
	if seed.Spec.Backup != nil {
		wanted.add(constants.ExtensionProviderTypePrefix, seed.Spec.Backup.Provider)
	}
	if seed.Spec.DNS.Provider != nil {
		wanted.add(constants.ExtensionDNSRecordTypePrefix, seed.Spec.DNS.Provider.Type)
	}
	return p.extensions(ctx, seed.Spec.Extensions, corev1beta1.ClusterTypeSeed, false, wanted)
}

func (p *Plugin) ofShoot(ctx context.Context, shoot *corev1beta1.Shoot, wanted labels) error {
	wanted.add(constants.ExtensionProviderTypePrefix, shoot.Spec.Provider.Type)
	if dns := shoot.Spec.DNS; dns != nil {
		for _, provider := range dns.Providers {
			if provider.Type != nil && *provider.Type != unmanaged {
				wanted.add(constants.ExtensionDNSRecordTypePrefix, *provider.Type)
			}
		}
	}
	if networking := shoot.Spec.Networking; networking != nil && networking.Type != nil {
		wanted.add(constants.ExtensionNetworkingTypePrefix, *networking.Type)
	}
	for _, worker := range shoot.Spec.Provider.Workers {
		if worker.Machine.Image != nil {
			wanted.add(constants.ExtensionOperatingSystemConfigTypePrefix, worker.Machine.Image.Name)
		}
		if worker.CRI != nil {
			for _, runtime := range worker.CRI.ContainerRuntimes {
				wanted.add(constants.ExtensionContainerRuntimeTypePrefix, runtime.Type)
			}
		}
		if worker.ControlPlane == nil {
			continue
		}
		if worker.ControlPlane.Backup != nil {
			wanted.add(constants.ExtensionProviderTypePrefix, worker.ControlPlane.Backup.Provider)
		}
		if exposure := worker.ControlPlane.Exposure; exposure != nil && exposure.Extension != nil {
			exposureType := shoot.Spec.Provider.Type
			if exposure.Extension.Type != nil {
				exposureType = *exposure.Extension.Type
			}
			wanted.add(constants.ExtensionSelfHostedShootExposureTypePrefix, exposureType)
		}
	}
	return p.extensions(ctx, shoot.Spec.Extensions, corev1beta1.ClusterTypeShoot, shoot.Workerless(), wanted)
}

// extensions adds the extensions in the spec of a cluster, and those that are enabled automatically.
func (p *Plugin) extensions(
	ctx context.Context, inSpec []corev1beta1.Extension, clusterType corev1beta1.ClusterType, workerless bool, wanted labels,
) error {
	named := map[string]bool{}
	for _, extension := range inSpec {
		named[extension.Type] = true
		if extension.Disabled == nil || !*extension.Disabled {
			wanted.add(constants.ExtensionExtensionTypePrefix, extension.Type)
		}
	}
	registrations := &corev1beta1.ControllerRegistrationList{}
	if err := p.GardenCache.List(ctx, registrations); err != nil {
		return fmt.Errorf("list ControllerRegistrations: %w", err)
	}
	for i := range registrations.Items {
		for _, r := range registrations.Items[i].Spec.Resources {
			if r.Kind == "Extension" && !named[r.Type] && slices.Contains(r.AutoEnable, clusterType) &&
				(!workerless || r.WorkerlessSupported != nil && *r.WorkerlessSupported) {
				wanted.add(constants.ExtensionExtensionTypePrefix, r.Type)
			}
		}
	}
	return nil
}

func (p *Plugin) ofNamespacedCloudProfile(ctx context.Context, profile *corev1beta1.NamespacedCloudProfile, wanted labels) error {
	parent := &corev1beta1.CloudProfile{}
	if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: profile.Spec.Parent.Name}, parent); err != nil {
		return fmt.Errorf("read parent CloudProfile %q: %w", profile.Spec.Parent.Name, err)
	}
	wanted.add(constants.ExtensionProviderTypePrefix, parent.Spec.Type)
	return nil
}

// labels are the desired labels of an object. They are validated with all other labels.
type labels map[string]string

func (l labels) add(prefix, extensionType string) { l[prefix+extensionType] = "true" }

// set sets the labels of an object, and removes others with one of the prefixes.
func (l labels) set(obj metav1.Object) {
	all := map[string]string{}
	for key, value := range obj.GetLabels() {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			all[key] = value
		}
	}
	for key, value := range l {
		all[key] = value
	}
	if len(all) == 0 {
		all = nil
	}
	obj.SetLabels(all)
}
