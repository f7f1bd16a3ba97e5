package local

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/validation/cidr"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
)

// namespaceRecheck is how often the deletion of the namespace with the machines is checked: an event of another cluster does not arrive here.
const namespaceRecheck = 10 * time.Second

// infrastructures reconciles Infrastructures: a namespace for the machines, which are pods. It is in the cluster of the seed, or in the one whose
// kubeconfig is in the credentials of the shoot; there it stays when the control plane moves to another seed.
type infrastructures struct {
	*places
	config providerlocalconfigv1alpha1.MachinesConfiguration
}

// Reconcile applies the namespace with its NetworkPolicy, and reports the network of nodes, which is that of the pods of its cluster.
func (a *infrastructures) Reconcile(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	if err := noConfig(providerConfig, infrastructure.Spec.ProviderConfig); err != nil {
		return err
	}
	if cluster == nil || cluster.Seed == nil {
		return fmt.Errorf("there is no Cluster %q with a seed", infrastructure.Namespace)
	}
	current, state, err := a.locate(ctx, infrastructure)
	if err != nil {
		return err
	}
	if state.Nodes, err = nodesOf(infrastructure, state, cluster, current); err != nil {
		return err
	}
	dual := dualStack(cluster.Shoot)
	if dual {
		if err := a.addIPv6(infrastructure, state, current, &cluster.Seed.Spec.Networks); err != nil {
			return err
		}
	}
	if err := setState(infrastructure, state); err != nil { // also if the namespace cannot be applied yet
		return err
	}
	namespace := namespaceFor(infrastructure)
	policy := MachinesPolicy(namespace.Name, networksOf(cluster.Seed, a.config.IPv6Network, state, current.inSeed), a.config.Registries)
	objects := []client.Object{namespace, policy}
	if current.inSeed {
		objects = append(objects, loadBalancerQuota(namespace.Name))
	}
	if err := kube.Apply(ctx, current, Name, objects...); err != nil {
		return err
	}
	if len(state.Nodes) == 0 {
		return nil
	}
	infrastructure.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: state.Nodes}
	if dual {
		networking := cluster.Shoot.Spec.Networking
		infrastructure.Status.Networking.Pods = []string{*networking.Pods, state.PodsIPv6}
		infrastructure.Status.Networking.Services = []string{*networking.Services, state.ServicesIPv6}
	}
	return nil
}

// dualStack reports whether a shoot has IPv6 beside IPv4.
func dualStack(shoot *corev1beta1.Shoot) bool {
	if shoot == nil {
		return false
	}
	networking := shoot.Spec.Networking
	return networking != nil && len(networking.IPFamilies) > 1 && networking.Pods != nil && networking.Services != nil
}

// addIPv6 completes the ranges of a dual-stack shoot. Nodes have addresses of the pods of their cluster. The ranges of pods and Services, for which a Shoot
// has no fields, are unique local addresses (RFC 4193) that follow from the UID of the first Infrastructure.
func (a *infrastructures) addIPv6(infrastructure *extensionsv1alpha1.Infrastructure, state *infrastructureState, current *target, seed *corev1beta1.SeedNetworks) error {
	if !slices.ContainsFunc(state.Nodes, isIPv6) {
		nodes := current.nodesIPv6
		if current.inSeed {
			nodes = a.config.IPv6Network
		}
		if nodes == "" {
			err := field.Invalid(field.NewPath("spec", "networking", "ipFamilies").Index(1), corev1beta1.IPFamilyIPv6,
				"machines of this shoot have no IPv6 addresses, or neither the configuration of provider-local nor the credentials name their network")
			return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
		}
		if !current.inSeed {
			if err := checkNodes(nodes, true, seed); err != nil {
				return err
			}
		}
		state.Nodes = append(slices.Clone(state.Nodes), nodes)
	}
	if state.PodsIPv6 == "" {
		const (
			pods     = 52  // room for 4096 nodes, each with a /64
			services = 108 // the largest range that kube-apiserver takes
		)
		addr := [16]byte{0: 0xfd}
		id := sha256.Sum256([]byte(infrastructure.UID))
		copy(addr[1:6], id[:])
		state.PodsIPv6 = netip.PrefixFrom(netip.AddrFrom16(addr), pods).String()
		addr[6], addr[7] = 0xff, 0xff
		state.ServicesIPv6 = netip.PrefixFrom(netip.AddrFrom16(addr), services).String()
	}
	return nil
}

func isIPv6(network string) bool { return strings.Contains(network, ":") }

// locate returns the cluster for the machines. The first time, it records where that is; later, it refuses another one.
func (a *infrastructures) locate(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure) (*target, *infrastructureState, error) {
	state, err := stateOf(infrastructure)
	if err != nil {
		return nil, nil, err
	}
	current, err := a.current(ctx, infrastructure.Spec.SecretRef)
	if err != nil {
		return nil, nil, err
	}
	if state.Place == nil {
		if state.Place, err = a.existing(ctx, infrastructure.Namespace, current); err != nil {
			return nil, nil, err
		}
		if err := setState(infrastructure, state); err != nil {
			return nil, nil, err
		}
	}
	if err := current.check(state.Place, infrastructure.Spec.SecretRef); err != nil {
		return nil, nil, err
	}
	state.Place = &current.place
	return current, state, nil
}

// Restore is Reconcile in another seed. A control plane that had its machines in the cluster of the former one has none, or it could not have moved: its
// next ones are where its credentials lead to.
func (a *infrastructures) Restore(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	state, err := stateOf(infrastructure)
	if err != nil {
		return err
	}
	if state.Place != nil && state.Place.Server == "" {
		state.Place = nil
		if err := setState(infrastructure, state); err != nil {
			return err
		}
	}
	return a.Reconcile(ctx, infrastructure, cluster)
}

// Migrate deletes the namespace in the cluster of the seed, which has no machines any more. In another cluster, it stays.
func (a *infrastructures) Migrate(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure, _ *extension.Cluster) error {
	state, err := stateOf(infrastructure)
	if err != nil || state.Place == nil || state.Place.Server != "" {
		return err
	}
	return deleteNamespace(ctx, a.client, namespaceFor(infrastructure))
}

// mostLoadBalancers is how many load balancers a shoot can have in its seed, whose operator pays for them.
const mostLoadBalancers = 20

// loadBalancerQuota limits those that the cloud-controller-manager creates for Services of the shoot.
func loadBalancerQuota(namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "load-balancers"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourceServicesLoadBalancers: *resource.NewQuantity(mostLoadBalancers, resource.DecimalSI),
		}},
	}
}

// namespaceFor returns the namespace for the machines of an Infrastructure. Machines are privileged pods.
func namespaceFor(infrastructure *extensionsv1alpha1.Infrastructure) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   localv1alpha1.InfrastructureNamespace(infrastructure.Namespace),
		Labels: map[string]string{podsecurityapi.EnforceLevelLabel: string(podsecurityapi.LevelPrivileged)},
	}}
}

// nodesOf returns the networks of nodes. The Shoot of a new Infrastructure must not have another one than that of the pods in the seed, unless machines are
// in another cluster: only the Shoot or its credentials can say what its network is. That of an existing one has machines: its spec follows what is reported.
func nodesOf(infrastructure *extensionsv1alpha1.Infrastructure, state *infrastructureState, cluster *extension.Cluster, current *target) ([]string, error) {
	pods := cluster.Seed.Spec.Networks.Pods
	if len(state.Nodes) > 0 || pods == "" {
		return state.Nodes, nil
	}
	if infrastructure.Status.Networking != nil {
		return []string{pods}, nil
	}
	var asked string
	if cluster.Shoot != nil && cluster.Shoot.Spec.Networking != nil {
		asked = ptr.Deref(cluster.Shoot.Spec.Networking.Nodes, "")
	}
	switch path := field.NewPath("spec", "networking", "nodes"); {
	case current.Server == "" && asked != "" && asked != pods:
		err := field.Invalid(path, asked, fmt.Sprintf("leave it out: machines are pods of the seed, whose network is %s", pods))
		return nil, errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	case asked != "":
		return []string{asked}, nil
	case current.inSeed:
		return []string{pods}, nil
	case current.nodes == "":
		err := field.Required(path, fmt.Sprintf("machines are pods of another cluster than the seed's: name their network here, or in the key %q of the credentials", nodesKey))
		return nil, errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	return []string{current.nodes}, checkNodes(current.nodes, false, &cluster.Seed.Spec.Networks)
}

// checkFamily checks a network of pods that credentials name: that of IPv4, or that of IPv6 after a comma.
func checkFamily(network string, ipv6 bool) field.ErrorList {
	path := field.NewPath("data").Key(nodesKey)
	errs := cidr.Validate(cidr.Network{Path: path, Value: network})
	if len(errs) == 0 && isIPv6(network) != ipv6 {
		errs = append(errs, field.Invalid(path, network, "must be an IPv4 network, which may be followed by a comma and an IPv6 network"))
	}
	return errs
}

// checkNodes refuses a network that credentials name and that a Shoot could not have in its spec. The spec has no field for that of IPv6, so that nothing
// else checks it.
func checkNodes(nodes string, ipv6 bool, seed *corev1beta1.SeedNetworks) error {
	path := field.NewPath("data").Key(nodesKey)
	network := cidr.Network{Path: path, Value: nodes}
	all := []cidr.Network{{Path: field.NewPath("pods of the seed"), Value: seed.Pods}, {Path: field.NewPath("services of the seed"), Value: seed.Services}}
	if seed.Nodes != nil {
		all = append(all, cidr.Network{Path: field.NewPath("nodes of the seed"), Value: *seed.Nodes})
	}
	if ipv6 {
		all = append(all, cidr.Network{Path: field.NewPath("the network of the VPN between seed and shoot"), Value: constants.DefaultVPNRangeV6})
	}
	errs := append(checkFamily(nodes, ipv6), cidr.ValidateDisjoint(append(all, network)...)...)
	if len(errs) == 0 {
		return nil
	}
	return errorcode.With(fmt.Errorf("credentials: %w", errs.ToAggregate()), corev1beta1.ErrorConfigurationProblem)
}

// Delete deletes the namespace, and what is left in it: in the seed whatever the credentials are now, as a former version may have left it there, and
// at the recorded place.
func (a *infrastructures) Delete(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure, _ *extension.Cluster) error {
	if err := deleteNamespace(ctx, a.client, namespaceFor(infrastructure)); err != nil {
		return err
	}
	other, err := a.other(ctx, infrastructure)
	if err != nil || other == nil {
		return err
	}
	return deleteNamespace(ctx, other, namespaceFor(infrastructure))
}

// ForceDelete does not wait for another cluster, which may not exist any more.
func (a *infrastructures) ForceDelete(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure, _ *extension.Cluster) error {
	if err := deleteNamespace(ctx, a.client, namespaceFor(infrastructure)); err != nil {
		return err
	}
	other, err := a.other(ctx, infrastructure)
	if err == nil && other != nil {
		err = deleteNamespace(ctx, other, namespaceFor(infrastructure))
	}
	if err != nil {
		logf.FromContext(ctx).Info("Not waiting for the deletion of machines in another cluster", "result", err.Error())
	}
	return nil
}

// deleteNamespace deletes a namespace. The error is an extension.Wait until it is deleted.
func deleteNamespace(ctx context.Context, c client.Client, namespace *corev1.Namespace) error {
	switch err := c.Delete(ctx, namespace); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil && !apierrors.IsConflict(err): // it is being deleted already
		return fmt.Errorf("delete Namespace %q: %w", namespace.Name, err)
	}
	return &extension.Wait{Reason: fmt.Sprintf("Namespace %q is being deleted", namespace.Name), After: namespaceRecheck}
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

// controlPlanes reconciles ControlPlanes: a cloud-controller-manager for load balancers, and the permissions of the container that the webhook adds to the
// machine-controller-manager.
type controlPlanes struct {
	*generic.ControlPlane
	places *places
}

func newControlPlanes(places *places, images providerlocalconfigv1alpha1.ImagesConfiguration) *controlPlanes {
	return &controlPlanes{
		places: places,
		ControlPlane: &generic.ControlPlane{
			Client: places.client, Reader: places.reader, Owner: Name, Components: renderCloudController(images.Gardener, places.access),
			Shoot: renderShootComponents(images.LocalStorage), StorageClasses: renderStorage(images.LocalStorage),
		},
	}
}

// Reconcile applies the permissions and the cloud-controller-manager.
func (a *controlPlanes) Reconcile(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, cluster *extension.Cluster) error {
	if err := noConfig(providerConfig, controlPlane.Spec.ProviderConfig); err != nil {
		return err
	}
	if err := a.places.permit(ctx, controlPlane.Namespace, controlPlane.Spec.SecretRef); err != nil {
		return err
	}
	return a.ControlPlane.Reconcile(ctx, controlPlane, cluster)
}

// Delete also deletes the permissions in the namespace of the control plane, which a version before 1.150 has created. Others are deleted with the namespace
// of the machines.
func (a *controlPlanes) Delete(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, cluster *extension.Cluster) error {
	if err := a.ControlPlane.Delete(ctx, controlPlane, cluster); err != nil {
		return err
	}
	return a.forbid(ctx, controlPlane.Namespace)
}

// ForceDelete does the same, and keeps what is in the shoot.
func (a *controlPlanes) ForceDelete(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, cluster *extension.Cluster) error {
	if err := a.ControlPlane.ForceDelete(ctx, controlPlane, cluster); err != nil {
		return err
	}
	return a.forbid(ctx, controlPlane.Namespace)
}

// Migrate does the same: machines and what belongs to them stay where they are.
func (a *controlPlanes) Migrate(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, cluster *extension.Cluster) error {
	if err := a.ControlPlane.Migrate(ctx, controlPlane, cluster); err != nil {
		return err
	}
	return a.forbid(ctx, controlPlane.Namespace)
}

// forbid deletes the permissions of a former version.
func (a *controlPlanes) forbid(ctx context.Context, namespace string) error {
	role, binding := DriverRole(namespace, namespace)
	return remove(ctx, a.places.client, binding, role)
}

// providerConfig is the path of the configuration of most kinds.
var providerConfig = field.NewPath("spec", "providerConfig")

// noConfig refuses a configuration, as this provider has none. An empty object is valid.
func noConfig(path *field.Path, config *runtime.RawExtension) error {
	if errs := unknownConfig(path, config); len(errs) > 0 {
		return errorcode.With(errs.ToAggregate(), corev1beta1.ErrorConfigurationProblem)
	}
	return nil
}

// unknownConfig returns the error for a configuration of a field that has none, if it is there.
func unknownConfig(path *field.Path, config *runtime.RawExtension) field.ErrorList {
	if config == nil || len(config.Raw) == 0 {
		return nil
	}
	var content map[string]any
	if err := json.Unmarshal(config.Raw, &content); err == nil && len(content) == 0 {
		return nil
	}
	var kind metav1.TypeMeta
	_ = json.Unmarshal(config.Raw, &kind) // it may have none
	return field.ErrorList{field.Invalid(path, kind.Kind, "the provider local has no configuration for this")}
}
