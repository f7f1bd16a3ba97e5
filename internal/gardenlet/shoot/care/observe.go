package care

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/access"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// probeTimeout is the end of the request to /healthz.
	probeTimeout = 15 * time.Second
	// readTimeout is the end of all reads in the shoot, and of all writes.
	readTimeout = 30 * time.Second
	// maxNodes is how many nodes the tunnel is tested with: one may be about to be deleted.
	maxNodes = 3
	// nodeTimeout is the end of the request to one of them.
	nodeTimeout = 5 * time.Second
)

// observed is what one pass has read of a control plane and of its shoot.
type observed struct {
	// From the seed. Of the credentials, only the metadata is read.
	deployments         []appsv1.Deployment
	statefulSets        []appsv1.StatefulSet
	etcds               []druidv1alpha1.Etcd
	managedResources    []resourcesv1alpha1.ManagedResource
	credentials         []metav1.PartialObjectMetadata
	extensionConditions []extensionCondition

	// apiServerError is why the API server of the shoot is not available. If it is nil, shootClient is set, and what follows is read by it.
	apiServerError error
	shootClient    ShootClient
	observedNodes
	// nodesError is why nodes cannot be read, and webhooksError why webhooks cannot.
	nodesError, webhooksError error
	// tunnelError is why the API server does not reach nodes.
	tunnelError error
	mutating    []admissionregistrationv1.MutatingWebhookConfiguration
	validating  []admissionregistrationv1.ValidatingWebhookConfiguration
	// conversionCRDs are the names of CRDs with a conversion webhook whose objects are stored in several versions. It is nil if they cannot be
	// read.
	conversionCRDs []string
}

// observe reads the state of a control plane, and of its shoot unless that is hibernated. That the shoot cannot be read is no error, but in
// the result.
func (r *reconciler) observe(ctx context.Context, shoot *corev1beta1.Shoot) (*observed, error) {
	namespace := client.InNamespace(shoot.Status.TechnicalID)
	deployments, etcds, managedResources, statefulSets := &appsv1.DeploymentList{}, &druidv1alpha1.EtcdList{}, &resourcesv1alpha1.ManagedResourceList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{deployments, etcds, managedResources, statefulSets} {
		if err := r.seedCache.List(ctx, list, namespace); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	o := &observed{deployments: deployments.Items, etcds: etcds.Items, managedResources: managedResources.Items, statefulSets: statefulSets.Items}
	credentials := metadataListOf("Secret")
	if err := r.SeedAPI.List(ctx, credentials, namespace, client.MatchingLabels{secrets.LabelKeyManagerIdentity: "gardenlet"}); err != nil {
		return nil, fmt.Errorf("list credentials: %w", err)
	}
	o.credentials = credentials.Items
	if err := r.observeExtensions(ctx, shoot, o); err != nil {
		return nil, err
	}
	if hibernated(shoot) {
		r.shoots.close(client.ObjectKeyFromObject(shoot))
		return o, nil
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		machineDeployments := &machinev1alpha1.MachineDeploymentList{}
		if err := r.SeedAPI.List(ctx, machineDeployments, namespace); err != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("list MachineDeployments: %w", err)
		}
		o.machineDeployments = machineDeployments.Items
	}
	r.observeShoot(ctx, shoot, o)
	return o, nil
}

// observeShoot reads what the API server of the shoot says.
func (r *reconciler) observeShoot(ctx context.Context, shoot *corev1beta1.Shoot, o *observed) {
	var shootClient ShootClient
	if shootClient, o.apiServerError = r.shootClient(ctx, shoot, o.credentials); o.apiServerError != nil {
		return
	}
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if o.apiServerError = shootClient.Healthz(probe); o.apiServerError != nil {
		return
	}
	read, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	o.shootClient = shootClient
	o.webhooksError = o.readWebhooks(read)
	if err := o.readConversionCRDs(read); err != nil {
		logf.FromContext(ctx).V(1).Info("Failed listing CustomResourceDefinitions in the shoot, keeping the constraint", "reason", err.Error())
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		if o.nodesError = o.readNodes(read); o.nodesError == nil {
			o.tunnelError = checkTunnel(ctx, shootClient, o.nodes) // with a timeout of its own, which long lists do not shorten
		}
	}
}

// shootClient returns a client with credentials of the current CAs.
func (r *reconciler) shootClient(ctx context.Context, shoot *corev1beta1.Shoot, credentials []metav1.PartialObjectMetadata) (ShootClient, error) {
	var cas []string
	for _, c := range credentials {
		if slices.Contains([]string{constants.SecretNameCACluster, constants.SecretNameCAClient}, c.Labels[secrets.LabelKeyName]) {
			cas = append(cas, string(c.UID))
		}
	}
	if len(cas) == 0 {
		return nil, errors.New("the kube-apiserver has no CAs yet")
	}
	slices.Sort(cas)
	now := r.Clock.Now()
	return r.shoots.get(client.ObjectKeyFromObject(shoot), strings.Join(cas, ","), now, func() ([]byte, error) {
		return access.Kubeconfig(ctx, access.Values{
			SeedAPI: r.SeedAPI, Namespace: shoot.Status.TechnicalID, Host: kubeapiserver.Name + "." + shoot.Status.TechnicalID + ".svc",
			Status: shoot.Status.Credentials, Now: now,
		})
	})
}

func (o *observed) readWebhooks(ctx context.Context) error {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	for _, list := range []client.ObjectList{mutating, validating} {
		if err := o.shootClient.List(ctx, list, fromCache()); err != nil {
			return fmt.Errorf("list webhooks in the shoot: %w", err)
		}
	}
	o.mutating, o.validating = mutating.Items, validating.Items
	return nil
}

func (o *observed) readConversionCRDs(ctx context.Context) error {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := o.shootClient.List(ctx, list, fromCache()); err != nil {
		return fmt.Errorf("list CustomResourceDefinitions in the shoot: %w", err)
	}
	o.conversionCRDs = []string{}
	for i := range list.Items {
		crd := &list.Items[i]
		if c := crd.Spec.Conversion; len(crd.Status.StoredVersions) > 1 && c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
			o.conversionCRDs = append(o.conversionCRDs, crd.Name)
		}
	}
	slices.Sort(o.conversionCRDs)
	return nil
}

func (o *observed) readNodes(ctx context.Context) error {
	nodes, leases, osConfigs := &corev1.NodeList{}, &coordinationv1.LeaseList{}, metadataListOf("Secret")
	system := client.InNamespace(metav1.NamespaceSystem)
	if err := o.shootClient.List(ctx, nodes, fromCache()); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	if err := o.shootClient.List(ctx, leases, fromCache(), system); err != nil {
		return fmt.Errorf("list Leases of nodes: %w", err)
	}
	if err := o.shootClient.List(ctx, osConfigs, fromCache(), system, client.MatchingLabels{constants.GardenRole: constants.GardenRoleOperatingSystemConfig}); err != nil {
		return fmt.Errorf("list OperatingSystemConfigs of nodes: %w", err)
	}
	o.nodes, o.leases, o.osConfigs = nodes.Items, leases.Items, osConfigs.Items
	return nil
}

// checkTunnel returns why the API server does not reach any of the first ready nodes with a machine. It returns nil if it reaches one, as that shows that
// the tunnel works, or if no node is ready.
func checkTunnel(ctx context.Context, shootClient ShootClient, nodes []corev1.Node) error {
	var err error
	checked := 0
	for i := range nodes {
		if checked == maxNodes {
			break
		}
		if !managed(&nodes[i]) || kube.NodeReady(&nodes[i]) != nil {
			continue
		}
		checked++
		nodeCtx, cancel := context.WithTimeout(ctx, nodeTimeout)
		err = shootClient.ReachNode(nodeCtx, nodes[i].Name)
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

// fromCache lets an API server answer from its watch cache, which is fresh enough for a periodic check. Each list needs an option of its own,
// as the client writes into it.
func fromCache() client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
}

// metadataListOf is an empty list of the metadata of objects of a kind of the core group.
func metadataListOf(kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return list
}
