// Package shootresourcereservation reserves resources of each node for Kubernetes, in Shoots that do not set kubeReserved.
package shootresourcereservation

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/config/admission/shootresourcereservation/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the plugin.
const Name = "ShootResourceReservation"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(file io.Reader) (admission.Interface, error) {
		configuration, err := configfile.Kind[v1alpha1.Configuration]{
			AddToScheme: v1alpha1.AddToScheme, Validate: config.ValidateShootResourceReservation,
		}.From(file)
		if err != nil {
			return nil, err
		}
		return New(configuration)
	})
}

// New returns the plugin.
func New(configuration *v1alpha1.Configuration) (*Plugin, error) {
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), useFormula: configuration.UseGKEFormula, selector: labels.Everything()}
	if configuration.Selector == nil {
		return p, nil
	}
	var err error
	p.selector, err = metav1.LabelSelectorAsSelector(configuration.Selector)
	return p, err
}

// Plugin changes Shoots. Reads cloud profiles.
type Plugin struct {
	*admission.Handler
	initializer.Base
	// useFormula is whether Shoots with matching labels get the reservation of the formula for each machine type.
	useFormula bool
	selector   labels.Selector
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" || shoot.DeletionTimestamp != nil || shoot.Workerless() {
		return nil
	}
	if !p.useFormula || !p.selector.Matches(labels.Set(shoot.Labels)) {
		setDefault(shoot)
		return nil
	}
	if k := shoot.Spec.Kubernetes.Kubelet; k != nil && k.KubeReserved != nil {
		return nil
	}
	types, err := p.machineTypes(ctx, shoot)
	if err != nil {
		return err
	}
	for i := range shoot.Spec.Provider.Workers {
		setByMachineType(&shoot.Spec.Provider.Workers[i], types)
	}
	return nil
}

// setDefault reserves the same on all nodes. Values that are set stay.
func setDefault(shoot *corev1beta1.Shoot) {
	kubelet := &shoot.Spec.Kubernetes.Kubelet
	if *kubelet == nil {
		*kubelet = &corev1beta1.KubeletConfig{}
	}
	if (*kubelet).KubeReserved == nil {
		(*kubelet).KubeReserved = &corev1beta1.KubeletConfigReserved{}
	}
	reserved := (*kubelet).KubeReserved
	if reserved.CPU == nil {
		reserved.CPU = quantity("80m")
	}
	if reserved.Memory == nil {
		reserved.Memory = quantity("1Gi")
	}
	if reserved.PID == nil {
		reserved.PID = quantity("20k")
	}
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// setByMachineType sets the reservation of the formula in a pool. A pool that has a reservation keeps it, as does one of an unknown type,
// which is refused elsewhere.
func setByMachineType(worker *corev1beta1.Worker, types map[string]corev1beta1.MachineType) {
	machineType, ok := types[worker.Machine.Type]
	if !ok || worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil && worker.Kubernetes.Kubelet.KubeReserved != nil {
		return
	}
	if worker.Kubernetes == nil {
		worker.Kubernetes = &corev1beta1.WorkerKubernetes{}
	}
	if worker.Kubernetes.Kubelet == nil {
		worker.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{}
	}
	worker.Kubernetes.Kubelet.KubeReserved = &corev1beta1.KubeletConfigReserved{
		CPU:    resource.NewMilliQuantity(reservedMilliCPU(machineType.CPU.MilliValue()), resource.DecimalSI),
		Memory: resource.NewQuantity(reservedMemory(machineType.Memory.Value()), resource.BinarySI),
		PID:    quantity("20k"),
	}
}

// machineTypes returns the machine types of the cloud profile of a Shoot. A profile that does not exist is refused elsewhere.
func (p *Plugin) machineTypes(ctx context.Context, shoot *corev1beta1.Shoot) (map[string]corev1beta1.MachineType, error) {
	ref := shoot.Spec.CloudProfile
	if ref == nil {
		return nil, nil
	}
	var (
		err  error
		list []corev1beta1.MachineType
	)
	if ref.Kind == "NamespacedCloudProfile" {
		profile := &corev1beta1.NamespacedCloudProfile{}
		err = p.GardenCache.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: ref.Name}, profile)
		list = profile.Status.CloudProfileSpec.MachineTypes
	} else {
		profile := &corev1beta1.CloudProfile{}
		err = p.GardenCache.Get(ctx, client.ObjectKey{Name: ref.Name}, profile)
		list = profile.Spec.MachineTypes
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("read %s %q: %w", ref.Kind, ref.Name, err))
	}
	types := map[string]corev1beta1.MachineType{}
	for _, t := range list {
		types[t.Name] = t
	}
	return types, nil
}

// step is a part of a machine's resources, and the share of it that is reserved, in units of a hundredth of a percent.
type step struct{ size, share int64 }

// reservedMilliCPU is, as GKE does it, 6 % of the first core, 1 % of the second, 0.5 % of the next two and 0.25 % of the others.
func reservedMilliCPU(milliCPU int64) int64 {
	return reserved(milliCPU, 25, step{1000, 600}, step{1000, 100}, step{2000, 50})
}

// reservedMemory is, as GKE does it, 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next 112 and 2 % of
// what is above 128 GiB. Machines with less than 1 GiB get 255 MiB.
func reservedMemory(bytes int64) int64 {
	const gib = 1 << 30
	if bytes < gib {
		return 255 << 20
	}
	return reserved(bytes, 200, step{4 * gib, 2500}, step{4 * gib, 2000}, step{8 * gib, 1000}, step{112 * gib, 600})
}

func reserved(total, rest int64, steps ...step) int64 {
	var sum int64
	for _, s := range append(steps, step{total, rest}) {
		part := min(total, s.size)
		sum += part / 10000 * s.share
		sum += part % 10000 * s.share / 10000
		total -= part
	}
	return sum
}
