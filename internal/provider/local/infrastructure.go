package local

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

// infrastructures reconciles Infrastructures, which need no resources: machines are pods in the seed, in whose network they are.
type infrastructures struct{}

// Reconcile reports the network of nodes, which is that of the pods in the seed. The Shoot of a new Infrastructure must not ask for another one.
// That of an existing one has machines: its spec follows what is reported.
func (infrastructures) Reconcile(_ context.Context, infrastructure *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	if err := noConfig(infrastructure.Spec.ProviderConfig); err != nil {
		return err
	}
	if cluster == nil || cluster.Seed == nil || cluster.Seed.Spec.Networks.Pods == "" {
		return nil
	}
	pods := cluster.Seed.Spec.Networks.Pods
	if cluster.Shoot != nil && cluster.Shoot.Spec.Networking != nil && infrastructure.Status.Networking == nil {
		if nodes := cluster.Shoot.Spec.Networking.Nodes; nodes != nil && *nodes != pods {
			err := field.Invalid(field.NewPath("spec", "networking", "nodes"), *nodes,
				fmt.Sprintf("leave it out: machines are pods of the seed, whose network is %s", pods))
			return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
		}
	}
	infrastructure.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: []string{pods}}
	return nil
}

// Delete does nothing.
func (infrastructures) Delete(context.Context, *extensionsv1alpha1.Infrastructure, *extension.Cluster) error {
	return nil
}

// controlPlanes reconciles ControlPlanes, which need no further components, as there are neither load balancers nor volumes of an
// infrastructure. Only the container that the webhook adds to the machine-controller-manager needs permissions.
type controlPlanes struct{ client client.Client }

// Reconcile applies the permissions.
func (a *controlPlanes) Reconcile(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, _ *extension.Cluster) error {
	if err := noConfig(controlPlane.Spec.ProviderConfig); err != nil {
		return err
	}
	return applyDriverRole(ctx, a.client, controlPlane.Namespace)
}

// Delete deletes them: the Worker is gone.
func (a *controlPlanes) Delete(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, _ *extension.Cluster) error {
	return deleteDriverRole(ctx, a.client, controlPlane.Namespace)
}

// noConfig refuses a providerConfig, as this provider has none. An empty object is valid.
func noConfig(config *runtime.RawExtension) error {
	if config == nil || len(config.Raw) == 0 {
		return nil
	}
	var content map[string]any
	if err := json.Unmarshal(config.Raw, &content); err != nil || len(content) > 0 {
		var kind metav1.TypeMeta
		_ = json.Unmarshal(config.Raw, &kind) // it may have none
		err := field.Invalid(field.NewPath("spec", "providerConfig"), kind.Kind, "the provider local has no configuration for this")
		return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	return nil
}
