package hosts

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/worker"
)

// prologue is what user data begins with.
//
//go:embed scripts/prologue.sh
var prologue string

// infrastructures reconciles Infrastructures: the network and the servers exist.
type infrastructures struct{}

// Reconcile refuses a configuration, as there is none.
func (infrastructures) Reconcile(_ context.Context, infrastructure *extensionsv1alpha1.Infrastructure, _ *extension.Cluster) error {
	return decode(infrastructure.Spec.ProviderConfig, &struct{ metav1.TypeMeta }{}, field.NewPath("spec", "providerConfig"))
}

// Delete does nothing: what exists stays.
func (infrastructures) Delete(context.Context, *extensionsv1alpha1.Infrastructure, *extension.Cluster) error {
	return nil
}

// workers are the Workers of the library.
type workers struct{ *worker.Actuator }

// Migrate is refused while there are machines: their hosts are in the inventory of this seed.
func (a *workers) Migrate(ctx context.Context, w *extensionsv1alpha1.Worker, _ *extension.Cluster) error {
	machines := &machinev1alpha1.MachineList{}
	if err := a.Reader.List(ctx, machines, client.InNamespace(w.Namespace), client.Limit(1)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	if len(machines.Items) == 0 {
		return nil
	}
	err := fmt.Errorf("machine %q is a host in the inventory of this seed: the control plane can only move without machines, for example while the shoot is hibernated",
		machines.Items[0].Name)
	return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
}

// delegate knows which hosts the machines of a pool are.
type delegate struct{}

// Class implements worker.Delegate. The providerConfig is a part of the hash that machines are replaced for.
func (delegate) Class(
	_ context.Context, w *extensionsv1alpha1.Worker, _ *extension.Cluster, pool *extensionsv1alpha1.WorkerPool, zone string,
) (*worker.Class, error) {
	at := field.NewPath("spec", "pools")
	for i := range w.Spec.Pools {
		if w.Spec.Pools[i].Name == pool.Name {
			at = at.Index(i)
		}
	}
	if pool.UpdateStrategy.InPlace() {
		err := field.Invalid(at.Child("updateStrategy"), *pool.UpdateStrategy, "hosts are not updated in place: use AutoRollingUpdate")
		return nil, errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	config := &hostsv1alpha1.WorkerConfig{}
	if err := decode(pool.ProviderConfig, config, at.Child("providerConfig")); err != nil {
		return nil, err
	}
	if errs := metav1validation.ValidateLabels(config.HostSelector, at.Child("providerConfig", "hostSelector")); len(errs) > 0 {
		return nil, errorcode.With(errs.ToAggregate(), corev1beta1.ErrorConfigurationProblem)
	}
	return &worker.Class{
		Provider:     hostsv1alpha1.MachineProvider,
		ProviderSpec: &hostsv1alpha1.MachineProviderSpec{MachineType: pool.MachineType, Zone: zone, HostSelector: config.HostSelector},
	}, nil
}

// ProviderStatus implements worker.Delegate. There is none.
func (delegate) ProviderStatus(context.Context, *extensionsv1alpha1.Worker, *extension.Cluster) (any, error) {
	return nil, nil
}

// decode reads a configuration strictly. No configuration is an empty one.
func decode(config *runtime.RawExtension, into any, at *field.Path) error {
	if config == nil || len(config.Raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(config.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return errorcode.With(field.Invalid(at, "", "the provider hosts does not know this configuration: "+err.Error()), corev1beta1.ErrorConfigurationProblem)
	}
	return nil
}
