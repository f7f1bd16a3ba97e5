package local

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

// namespaceRecheck is how often the deletion of the namespace with the machines is checked: an event of another cluster does not arrive here.
const namespaceRecheck = 10 * time.Second

// infrastructures reconciles Infrastructures: a namespace for the machines, which are pods. It is in the cluster of the seed, or in the one whose
// kubeconfig is in the credentials of the shoot; there it stays when the control plane moves to another seed.
type infrastructures struct {
	client client.Client
	reader client.Reader
}

// infrastructureState is what another seed cannot know.
type infrastructureState struct {
	// Nodes are the networks of the nodes.
	Nodes []string `json:"nodes"`
}

// Reconcile applies the namespace, and reports the network of nodes, which is that of the pods of its cluster.
func (a *infrastructures) Reconcile(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	if err := noConfig(infrastructure.Spec.ProviderConfig); err != nil {
		return err
	}
	c, other, err := target(ctx, a.client, a.reader, infrastructure.Spec.SecretRef)
	if err != nil {
		return err
	}
	nodes, err := nodesOf(infrastructure, cluster, other)
	if err != nil {
		return err
	}
	if err := kube.Apply(ctx, c, Name, namespaceFor(infrastructure)); err != nil {
		return err
	}
	if nodes == nil {
		return nil
	}
	raw, err := json.Marshal(infrastructureState{Nodes: nodes})
	if err != nil {
		return err
	}
	infrastructure.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: nodes}
	infrastructure.Status.State = &runtime.RawExtension{Raw: raw}
	return nil
}

// namespaceFor returns the namespace for the machines of an Infrastructure. Machines are privileged pods.
func namespaceFor(infrastructure *extensionsv1alpha1.Infrastructure) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   localv1alpha1.InfrastructureNamespace(infrastructure.Namespace),
		Labels: map[string]string{podsecurityapi.EnforceLevelLabel: string(podsecurityapi.LevelPrivileged)},
	}}
}

// nodesOf returns the networks of nodes. The Shoot of a new Infrastructure must not have another one than that of the pods in the seed, unless machines are
// in another cluster: only the Shoot can say what its network is. That of an existing one has machines: its spec follows what is reported.
func nodesOf(infrastructure *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster, other bool) ([]string, error) {
	state := infrastructureState{}
	if infrastructure.Status.State != nil {
		if err := json.Unmarshal(infrastructure.Status.State.Raw, &state); err != nil {
			return nil, fmt.Errorf("status.state: %w", err)
		}
	}
	if len(state.Nodes) > 0 {
		return state.Nodes, nil
	}
	if cluster == nil || cluster.Seed == nil || cluster.Seed.Spec.Networks.Pods == "" {
		return nil, nil
	}
	pods := cluster.Seed.Spec.Networks.Pods
	if cluster.Shoot != nil && cluster.Shoot.Spec.Networking != nil && infrastructure.Status.Networking == nil {
		if nodes := cluster.Shoot.Spec.Networking.Nodes; nodes != nil && *nodes != pods {
			if other {
				return []string{*nodes}, nil
			}
			err := field.Invalid(field.NewPath("spec", "networking", "nodes"), *nodes,
				fmt.Sprintf("leave it out: machines are pods of the seed, whose network is %s", pods))
			return nil, errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
		}
	}
	return []string{pods}, nil
}

// Delete deletes the namespace, and what is left in it.
func (a *infrastructures) Delete(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure, _ *extension.Cluster) error {
	c, _, err := target(ctx, a.client, a.reader, infrastructure.Spec.SecretRef)
	if err != nil {
		return err
	}
	namespace := namespaceFor(infrastructure)
	switch err := c.Delete(ctx, namespace); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil && !apierrors.IsConflict(err): // it is being deleted already
		return fmt.Errorf("delete Namespace %q: %w", namespace.Name, err)
	}
	return &extension.Wait{Reason: fmt.Sprintf("Namespace %q is being deleted", namespace.Name), After: namespaceRecheck}
}

// ForceDelete does not wait for another cluster, which may not exist any more.
func (a *infrastructures) ForceDelete(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	_, other, err := target(ctx, a.client, a.reader, infrastructure.Spec.SecretRef)
	if !other && err != nil {
		return err
	}
	if err = a.Delete(ctx, infrastructure, cluster); other {
		logf.FromContext(ctx).Info("Not waiting for the deletion of machines in another cluster", "result", fmt.Sprint(err))
		return nil
	}
	return err
}

// watchNamespaces requeues an Infrastructure when its namespace is deleted.
func watchNamespaces(b *builder.Builder, toObjects handler.MapFunc) {
	toInfrastructure := func(ctx context.Context, namespace client.Object) []reconcile.Request {
		controlPlane, ok := localv1alpha1.ControlPlaneOf(namespace.GetName())
		if !ok {
			return nil
		}
		return toObjects(ctx, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: controlPlane}})
	}
	b.WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(toInfrastructure), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}))
}

// controlPlanes reconciles ControlPlanes, which need no further components, as there are neither load balancers nor volumes of an
// infrastructure. Only the container that the webhook adds to the machine-controller-manager needs permissions.
type controlPlanes struct {
	client client.Client
	reader client.Reader
}

// Reconcile applies the permissions.
func (a *controlPlanes) Reconcile(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, _ *extension.Cluster) error {
	if err := noConfig(controlPlane.Spec.ProviderConfig); err != nil {
		return err
	}
	return applyDriverRole(ctx, a.client, a.reader, controlPlane.Namespace, controlPlane.Spec.SecretRef)
}

// Delete deletes those in the namespace of the control plane, which a version before 1.150 has created. Others are deleted with the namespace of the
// machines.
func (a *controlPlanes) Delete(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, _ *extension.Cluster) error {
	role, binding := DriverRole(controlPlane.Namespace, controlPlane.Namespace)
	return remove(ctx, a.client, binding, role)
}

// Migrate does the same: machines and what belongs to them stay where they are.
func (a *controlPlanes) Migrate(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, cluster *extension.Cluster) error {
	return a.Delete(ctx, controlPlane, cluster)
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
