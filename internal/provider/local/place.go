package local

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/decoded"
	"gardener.cloud/gardener/pkg/errorcode"
)

// kubeconfigKey is the key of the shoot's credentials with the kubeconfig of the cluster whose pods are its machines. Without it, that is the cluster of
// the seed. A control plane can only move to another seed with it.
const kubeconfigKey = "kubeconfig"

// nodesKey is the key of the shoot's credentials with the network of the pods in the cluster of the kubeconfig, in CIDR notation. Shoots whose spec names no
// network of nodes have it.
const nodesKey = "nodes"

const (
	// userTimeout limits a request to a cluster of a user.
	userTimeout = 30 * time.Second
	// mostOfUser is how many bytes a response of it may have.
	mostOfUser = 8 << 20
)

// place identifies the cluster with the machines of a shoot. Its first Infrastructure records it, as machines would be left behind if credentials led to
// another cluster later.
type place struct {
	// UID is that of the namespace kube-system there. It stays when an address or credentials change.
	UID types.UID `json:"uid"`
	// Server is the address of the API server in the kubeconfig of the credentials. Empty means the cluster of the seed, without a kubeconfig.
	Server string `json:"server,omitempty"`
}

// infrastructureState is in the status of an Infrastructure, and moves with it to another seed.
type infrastructureState struct {
	// Nodes are the networks of the nodes.
	Nodes []string `json:"nodes,omitempty"`
	// PodsIPv6 and ServicesIPv6 are ranges of a dual-stack shoot. They stay, as its nodes and Services have parts of them.
	PodsIPv6     string `json:"podsIPv6,omitempty"`
	ServicesIPv6 string `json:"servicesIPv6,omitempty"`
	// Place is where the machines are. A version before 1.150 has recorded none.
	Place *place `json:"place,omitempty"`
}

func stateOf(infrastructure *extensionsv1alpha1.Infrastructure) (*infrastructureState, error) {
	state := &infrastructureState{}
	if infrastructure.Status.State == nil {
		return state, nil
	}
	if err := json.Unmarshal(infrastructure.Status.State.Raw, state); err != nil {
		return nil, fmt.Errorf("status.state: %w", err)
	}
	return state, nil
}

func setState(infrastructure *extensionsv1alpha1.Infrastructure, state *infrastructureState) error {
	raw, err := json.Marshal(state)
	if err != nil {
		return err
	}
	infrastructure.Status.State = &runtime.RawExtension{Raw: raw}
	return nil
}

// places finds the clusters with machines.
type places struct {
	client client.Client
	// reader reads from the API server of the seed.
	reader client.Reader
	// connect returns a client for a kubeconfig, and the address of its server.
	connect func(kubeconfig []byte) (client.Client, string, error)
}

// connectTo returns places.connect. It is a user's cluster: a server that answers late or much, or with what takes much memory or long to decode, must not
// hold up other shoots.
func connectTo(scheme *runtime.Scheme, blocked func(host string) string) func([]byte) (client.Client, string, error) {
	return func(kubeconfig []byte) (client.Client, string, error) {
		config, err := kube.ConfigOfUser(kubeconfig, blocked)
		if err != nil {
			return nil, "", err
		}
		config.Timeout = userTimeout
		kube.LimitResponses(config, mostOfUser)
		decoded.LimitResponses(config, scheme)
		httpClient, err := kube.HTTPClientOfUser(config, blocked)
		if err != nil {
			return nil, "", err
		}
		c, err := client.New(config, client.Options{Scheme: scheme, HTTPClient: httpClient})
		return c, config.Host, err
	}
}

// target is a cluster, and where it is.
type target struct {
	client.Client
	place
	// inSeed reports whether it is the cluster of the seed, also if there is a kubeconfig for it.
	inSeed bool
	// nodes and nodesIPv6 are the networks of pods there as the credentials name them. They may be empty.
	nodes, nodesIPv6 string
}

// current returns the cluster that the credentials of a shoot lead to.
func (p *places) current(ctx context.Context, ref corev1.SecretReference) (*target, error) {
	credentials, err := p.credentials(ctx, ref)
	if err != nil {
		return nil, err
	}
	kubeconfig := credentials.Data[kubeconfigKey]
	seed, err := kube.ClusterUID(ctx, p.reader)
	if err != nil || len(kubeconfig) == 0 {
		return &target{Client: p.client, place: place{UID: seed}, inSeed: true}, err
	}
	c, server, err := p.connect(kubeconfig)
	if err != nil {
		return nil, errorcode.With(fmt.Errorf("Secret %q: %w", ref.Name, err), corev1beta1.ErrorConfigurationProblem)
	}
	uid, err := kube.ClusterUID(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cluster of the kubeconfig in Secret %q: %w", ref.Name, err)
	}
	if uid == seed {
		c = p.client
	}
	nodes, nodesIPv6, _ := strings.Cut(string(credentials.Data[nodesKey]), ",")
	return &target{c, place{uid, server}, uid == seed, nodes, nodesIPv6}, nil
}

// kubeconfig returns the kubeconfig in the credentials of a shoot, or nothing if there is none.
func (p *places) kubeconfig(ctx context.Context, ref corev1.SecretReference) ([]byte, error) {
	credentials, err := p.credentials(ctx, ref)
	return credentials.Data[kubeconfigKey], err
}

func (p *places) credentials(ctx context.Context, ref corev1.SecretReference) (*corev1.Secret, error) {
	credentials := &corev1.Secret{}
	if err := p.reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, credentials); err != nil {
		return credentials, fmt.Errorf("read Secret %q: %w", ref.Name, err)
	}
	return credentials, nil
}

// existing returns where the machines of a control plane without a record are: in the seed if there are any, or else where its credentials lead to.
func (p *places) existing(ctx context.Context, controlPlane string, current *target) (*place, error) {
	if current.inSeed {
		return &current.place, nil
	}
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	namespace := localv1alpha1.InfrastructureNamespace(controlPlane)
	if err := p.reader.List(ctx, pods, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return nil, fmt.Errorf("list Pods of namespace %q: %w", namespace, err)
	}
	if len(pods.Items) == 0 {
		return &current.place, nil
	}
	uid, err := kube.ClusterUID(ctx, p.reader)
	return &place{UID: uid}, err
}

// check refuses credentials that lead to another cluster than the recorded one. For the same one, they may be others.
func (t *target) check(recorded *place, ref corev1.SecretReference) error {
	if t.UID == recorded.UID {
		return nil
	}
	return elsewhere(recorded, ref)
}

// elsewhere returns the error for credentials that do not lead to the cluster with the machines.
func elsewhere(recorded *place, ref corev1.SecretReference) error {
	err := fmt.Errorf("Secret %q: the machines of the shoot are in the cluster of its seed, and cannot move to another one: "+
		"remove the key %q from the credentials, and create another Shoot for machines in another cluster", ref.Name, kubeconfigKey)
	if recorded.Server != "" {
		err = fmt.Errorf("Secret %q: the machines of the shoot are in the cluster with the API server %s, and cannot move to another one: "+
			"set the key %q of the credentials to a kubeconfig of that cluster", ref.Name, recorded.Server, kubeconfigKey)
	}
	return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
}

// infrastructure returns the Infrastructure of a control plane and its state. It is nil if there is none.
func (p *places) infrastructure(ctx context.Context, controlPlane string) (*extensionsv1alpha1.Infrastructure, *infrastructureState, error) {
	all := &extensionsv1alpha1.InfrastructureList{}
	if err := p.reader.List(ctx, all, client.InNamespace(controlPlane)); err != nil {
		return nil, nil, fmt.Errorf("list Infrastructures: %w", err)
	}
	for i := range all.Items {
		if all.Items[i].Spec.Type == Type {
			state, err := stateOf(&all.Items[i])
			return &all.Items[i], state, err
		}
	}
	return nil, &infrastructureState{}, nil
}

// driverAccess is how the driver of a control plane gets to the cluster with the machines.
type driverAccess struct {
	// kubeconfig is empty for the cluster of the seed.
	kubeconfig []byte
	// cluster is the UID of the place, if it is recorded and another cluster.
	cluster types.UID
}

// access returns how the driver gets to the recorded place of the machines, or else to the cluster that the credentials lead to. It sends no request to a
// cluster of a user: the driver itself does not start if the kubeconfig is for another one than the recorded one.
func (p *places) access(ctx context.Context, controlPlane string, ref corev1.SecretReference) (driverAccess, error) {
	_, state, err := p.infrastructure(ctx, controlPlane)
	if err != nil {
		return driverAccess{}, err
	}
	if state.Place == nil {
		kubeconfig, err := p.kubeconfig(ctx, ref)
		return driverAccess{kubeconfig: kubeconfig}, err
	}
	if seed, err := kube.ClusterUID(ctx, p.reader); err != nil || seed == state.Place.UID {
		return driverAccess{}, err
	}
	kubeconfig, err := p.kubeconfig(ctx, ref)
	if err == nil && len(kubeconfig) == 0 {
		err = elsewhere(state.Place, ref)
	}
	return driverAccess{kubeconfig, state.Place.UID}, err
}

// permit applies the role of the driver where the machines are, unless the credentials of the shoot have the permissions.
func (p *places) permit(ctx context.Context, controlPlane string, ref corev1.SecretReference) error {
	access, err := p.access(ctx, controlPlane, ref)
	if err != nil || len(access.kubeconfig) > 0 {
		return err
	}
	role, binding := DriverRole(controlPlane, localv1alpha1.InfrastructureNamespace(controlPlane))
	return kube.Apply(ctx, p.client, Name, role, binding)
}

// other returns the cluster with machines of an Infrastructure if it is not the one of the seed, or nil.
func (p *places) other(ctx context.Context, infrastructure *extensionsv1alpha1.Infrastructure) (*target, error) {
	state, err := stateOf(infrastructure)
	if err != nil {
		return nil, err
	}
	if state.Place != nil {
		if seed, err := kube.ClusterUID(ctx, p.reader); err != nil || seed == state.Place.UID {
			return nil, err
		}
	}
	current, err := p.current(ctx, infrastructure.Spec.SecretRef)
	if err != nil || current.inSeed && state.Place == nil {
		return nil, err
	}
	if state.Place == nil {
		state.Place = &current.place
	}
	return current, current.check(state.Place, infrastructure.Spec.SecretRef)
}

// keep lets a control plane with machines move to another seed, if that finds them.
func (p *places) keep(ctx context.Context, controlPlane string, ref corev1.SecretReference) error {
	current, err := p.current(ctx, ref)
	if err != nil {
		return err
	}
	infrastructure, state, err := p.infrastructure(ctx, controlPlane)
	if err != nil {
		return err
	}
	if state.Place == nil {
		if state.Place, err = p.existing(ctx, controlPlane, current); err != nil {
			return err
		}
	}
	if err := current.check(state.Place, ref); err != nil {
		return err
	}
	if current.Server == "" {
		return errorcode.With(fmt.Errorf("Secret %q has no key %q: without it, the other seed does not find the machines, which are in the cluster of this one",
			ref.Name, kubeconfigKey), corev1beta1.ErrorConfigurationProblem)
	}
	if infrastructure == nil {
		return nil
	}
	// From now on, they are in another cluster than that of the seed.
	before := infrastructure.DeepCopy()
	state.Place = &current.place
	if err := setState(infrastructure, state); err != nil {
		return err
	}
	if err := p.client.Status().Patch(ctx, infrastructure, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write status of Infrastructure %q: %w", infrastructure.Name, err)
	}
	return nil
}

// remove deletes objects that may exist.
func remove(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		if err := c.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %T %q: %w", object, object.GetName(), err)
		}
	}
	return nil
}
