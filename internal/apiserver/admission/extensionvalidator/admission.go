// Package extensionvalidator refuses objects that need an extension for which there is no ControllerRegistration.
package extensionvalidator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "ExtensionValidator"

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

// Plugin checks extension types. Reads ControllerRegistrations and BackupBuckets.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	obj, ok := a.GetObject().(client.Object)
	if !ok || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	var needed needs
	switch o := obj.(type) {
	case *corev1beta1.Seed:
		needed = ofSeed(o)
	case *corev1beta1.Shoot:
		needed = ofShoot(o)
	case *corev1beta1.BackupBucket:
		needed.add("BackupBucket", o.Spec.Provider.Type, field.NewPath("spec", "provider", "type"))
	case *corev1beta1.BackupEntry:
		bucket := &corev1beta1.BackupBucket{}
		if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: o.Spec.BucketName}, bucket); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("read BackupBucket %q: %w", o.Spec.BucketName, err))
		}
		needed.add("BackupEntry", bucket.Spec.Provider.Type, field.NewPath("spec", "bucketName"))
	default:
		return nil
	}
	registrations := &corev1beta1.ControllerRegistrationList{}
	if err := p.GardenCache.List(ctx, registrations); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list ControllerRegistrations: %w", err))
	}
	if err := needed.check(registrations.Items); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// needs are the extensions that an object needs.
type needs []need

// need is an extension that must be registered.
type need struct {
	kind, extensionType string
	path                *field.Path
	// cluster is what an Extension must be compatible with.
	cluster corev1beta1.ClusterType
	// workerless is whether an Extension must support clusters without nodes.
	workerless bool
}

// add adds an extension, if its type is set: validation requires it.
func (n *needs) add(kind, extensionType string, path *field.Path) {
	if extensionType != "" {
		*n = append(*n, need{kind: kind, extensionType: extensionType, path: path})
	}
}

// addExtensions adds those of kind Extension.
func (n *needs) addExtensions(extensions []corev1beta1.Extension, cluster corev1beta1.ClusterType, workerless bool) {
	for i, extension := range extensions {
		if extension.Type != "" && (extension.Disabled == nil || !*extension.Disabled) {
			*n = append(*n, need{
				kind: "Extension", extensionType: extension.Type, path: field.NewPath("spec", "extensions").Index(i).Child("type"),
				cluster: cluster, workerless: workerless,
			})
		}
	}
}

func ofSeed(seed *corev1beta1.Seed) needs {
	var n needs
	spec := field.NewPath("spec")
	if backup := seed.Spec.Backup; backup != nil {
		n.add("BackupBucket", backup.Provider, spec.Child("backup", "provider"))
		n.add("BackupEntry", backup.Provider, spec.Child("backup", "provider"))
	}
	n.add("ControlPlane", seed.Spec.Provider.Type, spec.Child("provider", "type"))
	if provider := seed.Spec.DNS.Provider; provider != nil {
		n.add("DNSRecord", provider.Type, spec.Child("dns", "provider", "type"))
	}
	n.addExtensions(seed.Spec.Extensions, corev1beta1.ClusterTypeSeed, false)
	return n
}

func ofShoot(shoot *corev1beta1.Shoot) needs {
	var n needs
	spec := field.NewPath("spec")
	if dns := shoot.Spec.DNS; dns != nil {
		for i, provider := range dns.Providers {
			if provider.Type != nil && *provider.Type != unmanaged {
				n.add("DNSRecord", *provider.Type, spec.Child("dns", "providers").Index(i).Child("type"))
			}
		}
	}
	workerless := shoot.Workerless()
	n.addExtensions(shoot.Spec.Extensions, corev1beta1.ClusterTypeShoot, workerless)
	if workerless {
		return n
	}
	for _, kind := range []string{"ControlPlane", "Infrastructure", "Worker"} {
		n.add(kind, shoot.Spec.Provider.Type, spec.Child("provider", "type"))
	}
	if networking := shoot.Spec.Networking; networking != nil && networking.Type != nil {
		n.add("Network", *networking.Type, spec.Child("networking", "type"))
	}
	for i, worker := range shoot.Spec.Provider.Workers {
		path := spec.Child("provider", "workers").Index(i)
		if worker.Machine.Image != nil {
			n.add("OperatingSystemConfig", worker.Machine.Image.Name, path.Child("machine", "image", "name"))
		}
		if worker.CRI != nil {
			for j, runtime := range worker.CRI.ContainerRuntimes {
				n.add("ContainerRuntime", runtime.Type, path.Child("cri", "containerRuntimes").Index(j).Child("type"))
			}
		}
		if worker.ControlPlane == nil {
			continue
		}
		if backup := worker.ControlPlane.Backup; backup != nil {
			n.add("BackupBucket", backup.Provider, path.Child("controlPlane", "backup", "provider"))
		}
		if exposure := worker.ControlPlane.Exposure; exposure != nil && exposure.Extension != nil && exposure.Extension.Type != nil {
			n.add("SelfHostedShootExposure", *exposure.Extension.Type, path.Child("controlPlane", "exposure", "extension", "type"))
		}
	}
	return n
}

// check returns an error that names all extensions which are not registered.
func (n needs) check(registrations []corev1beta1.ControllerRegistration) error {
	type key struct{ kind, extensionType string }
	registered := map[key]corev1beta1.ControllerResource{}
	for i := range registrations {
		if registrations[i].DeletionTimestamp != nil {
			continue
		}
		for _, r := range registrations[i].Spec.Resources {
			if r.Primary == nil || *r.Primary {
				registered[key{r.Kind, r.Type}] = r
			}
		}
	}
	var errs []error
	for _, need := range n {
		resource, ok := registered[key{need.kind, need.extensionType}]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%s: %q: no ControllerRegistration is primarily responsible for kind %s with this type",
				need.path, need.extensionType, need.kind))
		case need.cluster != "" && !compatible(resource, need.cluster):
			errs = append(errs, fmt.Errorf("%s: %q: this extension does not support a %s", need.path, need.extensionType, need.cluster))
		case need.workerless && (resource.WorkerlessSupported == nil || !*resource.WorkerlessSupported):
			errs = append(errs, fmt.Errorf("%s: %q: this extension does not support workerless Shoots", need.path, need.extensionType))
		}
	}
	return errors.Join(errs...)
}

// compatible reports whether an extension is for a type of cluster: by default for shoots.
func compatible(r corev1beta1.ControllerResource, cluster corev1beta1.ClusterType) bool {
	if len(r.ClusterCompatibility) == 0 {
		return cluster == corev1beta1.ClusterTypeShoot
	}
	return slices.Contains(r.ClusterCompatibility, cluster)
}
