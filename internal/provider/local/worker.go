package local

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/worker"
)

// defaultArchitecture is the architecture of pools that set none.
const defaultArchitecture = "amd64"

// workers are the Workers of the library, with the permissions of the container in the pods of the machine-controller-manager.
type workers struct {
	*worker.Actuator
	places *places
}

// newWorkers returns the actuator of Workers.
func newWorkers(v worker.Values, p *places, registries []localv1alpha1.MachineRegistry) *workers {
	v.Name, v.Delegate = Name, &delegate{registries: registries}
	return &workers{worker.New(v), p}
}

// Reconcile applies the permissions and the machines.
func (a *workers) Reconcile(ctx context.Context, w *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	if err := a.permit(ctx, w); err != nil {
		return err
	}
	return a.Actuator.Reconcile(ctx, w, cluster)
}

// Restore does the same with machines of a control plane that came from another seed.
func (a *workers) Restore(ctx context.Context, w *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	if err := a.permit(ctx, w); err != nil {
		return err
	}
	return a.Actuator.Restore(ctx, w, cluster)
}

// Delete deletes the machines, for which permissions are still needed.
func (a *workers) Delete(ctx context.Context, w *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	if err := a.permitFormer(ctx, w.Namespace); err != nil {
		return err
	}
	return a.Actuator.Delete(ctx, w, cluster)
}

// permit lets the driver work in the namespace of the machines.
func (a *workers) permit(ctx context.Context, w *extensionsv1alpha1.Worker) error {
	if err := a.places.permit(ctx, w.Namespace, w.Spec.SecretRef); err != nil {
		return err
	}
	return a.permitFormer(ctx, w.Namespace)
}

// permitFormer lets it work in the namespace of the control plane while machines are there that a version before 1.150 has created.
//
// TODO: drop when shoots are not upgraded from versions before 1.150 any more.
func (a *workers) permitFormer(ctx context.Context, namespace string) error {
	former, err := a.former(ctx, namespace)
	if err != nil {
		return err
	}
	role, binding := DriverRole(namespace, namespace)
	if former {
		return kube.Apply(ctx, a.Client, Name, role, binding)
	}
	return remove(ctx, a.Client, binding, role)
}

// former reports whether there is a class whose machines are in the namespace of the control plane.
func (a *workers) former(ctx context.Context, namespace string) (bool, error) {
	classes := &machinev1alpha1.MachineClassList{}
	if err := a.Reader.List(ctx, classes, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("list MachineClasses: %w", err)
	}
	for _, class := range classes.Items {
		spec := &localv1alpha1.MachineProviderSpec{}
		if err := json.Unmarshal(class.ProviderSpec.Raw, spec); err != nil || spec.Namespace == "" {
			return true, nil
		}
	}
	return false, nil
}

// Migrate does nothing, as machines stay where they are. It is refused if the other seed would not find them.
func (a *workers) Migrate(ctx context.Context, w *extensionsv1alpha1.Worker, _ *extension.Cluster) error {
	machines := &machinev1alpha1.MachineList{}
	if err := a.Reader.List(ctx, machines, client.InNamespace(w.Namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for _, machine := range machines.Items {
		if strings.HasPrefix(machine.Spec.ProviderID, "local:///"+w.Namespace+"/") {
			err := fmt.Errorf("machine %q is in the namespace of the control plane, and would be deleted with it: delete it first, so that it is replaced", machine.Name)
			return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
		}
	}
	if len(machines.Items) == 0 {
		return nil
	}
	return a.places.keep(ctx, w.Namespace, w.Spec.SecretRef)
}

// delegate knows what local machines are created from.
type delegate struct {
	registries []localv1alpha1.MachineRegistry
}

// Class implements worker.Delegate.
func (d *delegate) Class(
	_ context.Context, w *extensionsv1alpha1.Worker, cluster *extension.Cluster, pool *extensionsv1alpha1.WorkerPool, zone string,
) (*worker.Class, error) {
	at := field.NewPath("spec", "pools").Index(slices.IndexFunc(w.Spec.Pools, func(p extensionsv1alpha1.WorkerPool) bool { return p.Name == pool.Name }))
	if err := noConfig(at.Child("providerConfig"), pool.ProviderConfig); err != nil {
		return nil, err
	}
	image, err := imageOf(w, cluster, pool, at.Child("machineImage"))
	if err != nil {
		return nil, err
	}
	namespace := localv1alpha1.InfrastructureNamespace(w.Namespace)
	return &worker.Class{
		Provider: localv1alpha1.MachineProvider,
		ProviderSpec: &localv1alpha1.MachineProviderSpec{
			TypeMeta: metav1.TypeMeta{APIVersion: localv1alpha1.SchemeGroupVersion.String(), Kind: "MachineProviderSpec"},
			Image:    image.Image, Namespace: namespace, Registries: d.registries, Zone: nodeZone(cluster.Seed, zone),
		},
		// Those of a version before 1.150 are replaced, as they are in another namespace.
		Hash: []string{image.Image, namespace},
	}, nil
}

// nodeZone returns the zone of the nodes on which machines of a zone have to be, so that they are lost together. A zone that the seed does not have is only
// a label: there, and in seeds with one zone, machines are anywhere.
func nodeZone(seed *corev1beta1.Seed, zone string) string {
	if seed == nil || len(seed.Spec.Provider.Zones) < 2 || !slices.Contains(seed.Spec.Provider.Zones, zone) {
		return ""
	}
	return zone
}

// ProviderStatus implements worker.Delegate. It has the images of all pools.
func (d *delegate) ProviderStatus(_ context.Context, w *extensionsv1alpha1.Worker, cluster *extension.Cluster) (any, error) {
	status := &localv1alpha1.WorkerStatus{TypeMeta: metav1.TypeMeta{APIVersion: localv1alpha1.SchemeGroupVersion.String(), Kind: "WorkerStatus"}}
	for i := range w.Spec.Pools {
		image, err := imageOf(w, cluster, &w.Spec.Pools[i], field.NewPath("spec", "pools").Index(i).Child("machineImage"))
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(status.MachineImages, func(i localv1alpha1.MachineImage) bool {
			return i.Name == image.Name && i.Version == image.Version && i.Image == image.Image
		}) {
			status.MachineImages = append(status.MachineImages, *image)
		}
	}
	return status, nil
}

// imageOf returns the machine image of a pool: the one in the CloudProfile or, if it was removed there, the one in the status of the Worker.
func imageOf(
	worker *extensionsv1alpha1.Worker, cluster *extension.Cluster, pool *extensionsv1alpha1.WorkerPool, at *field.Path,
) (*localv1alpha1.MachineImage, error) {
	if pool.MachineImage == nil {
		return nil, errorcode.With(field.Required(at, "machines need an image"), corev1beta1.ErrorConfigurationProblem)
	}
	profile, err := profileConfig(cluster.CloudProfile)
	if err != nil {
		return nil, errorcode.With(fmt.Errorf("CloudProfile %q: %w", cluster.CloudProfile.Name, err), corev1beta1.ErrorConfigurationProblem)
	}
	name, version := pool.MachineImage.Name, pool.MachineImage.Version
	architecture := ptr.Deref(pool.Architecture, defaultArchitecture)
	if image := imageIn(&cluster.CloudProfile.Spec, profile, name, version, pool.MachineType, architecture); image != nil {
		return image, nil
	}
	before := &localv1alpha1.WorkerStatus{}
	if status := worker.Status.ProviderStatus; status != nil {
		_ = json.Unmarshal(status.Raw, before) // written by this controller; an invalid status has no image
	}
	images := slices.DeleteFunc(before.MachineImages, func(i localv1alpha1.MachineImage) bool { return i.Name != name || i.Version != version })
	if image := bestImage(&cluster.CloudProfile.Spec, pool.MachineType, architecture, images); image != nil {
		return image, nil
	}
	err = field.NotFound(at, name+" "+version)
	return nil, errorcode.With(fmt.Errorf("CloudProfile %q: %w", cluster.CloudProfile.Name, err), corev1beta1.ErrorConfigurationProblem)
}

// imageIn returns a machine image of a cloud profile for machines of a type and an architecture, or nil if there is none. The spec has the capabilities. An
// empty type stands for any.
func imageIn(
	spec *corev1beta1.CloudProfileSpec, config *localv1alpha1.CloudProfileConfig, name, version, machineType, architecture string,
) *localv1alpha1.MachineImage {
	v := findVersion(config, name, version)
	if v == nil {
		return nil
	}
	var flavors []localv1alpha1.MachineImage
	for _, flavor := range v.CapabilityFlavors {
		flavors = append(flavors, localv1alpha1.MachineImage{Name: name, Version: version, Image: flavor.Image, Capabilities: flavor.Capabilities})
	}
	if image := bestImage(spec, machineType, architecture, flavors); image != nil || v.Image == "" {
		return image
	}
	return &localv1alpha1.MachineImage{Name: name, Version: version, Image: v.Image}
}

// bestImage returns the image for machines of a type and an architecture, or nil if none fits.
func bestImage(spec *corev1beta1.CloudProfileSpec, machineType, architecture string, images []localv1alpha1.MachineImage) *localv1alpha1.MachineImage {
	capabilities := make([]corev1beta1.Capabilities, 0, len(images))
	for _, image := range images {
		capabilities = append(capabilities, image.Capabilities)
	}
	if i := extension.ImageFlavor(spec, machineType, architecture, capabilities); i >= 0 {
		return &images[i]
	}
	return nil
}
