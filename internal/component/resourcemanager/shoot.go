package resourcemanager

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
)

// targetRole is the ClusterRole that a resource manager has in a shoot.
const targetRole = "gardener.cloud:target:resource-manager"

// Shoot says that the resource manager runs in the seed and manages the cluster of a shoot.
type Shoot struct {
	// GenericKubeconfig is the Secret with the generic token kubeconfig of the control plane's components. The token is its own.
	GenericKubeconfig string
}

// ShootOptions are what the configuration of a shoot's resource manager depends on.
type ShootOptions struct {
	// Namespace is the namespace of the control plane.
	Namespace string
	// ClusterIdentity is that of the seed, for the origin annotation of objects in the shoot. It may be empty.
	ClusterIdentity string
	// Workerless says that the cluster has no nodes: controllers for nodes and pods are disabled then.
	Workerless bool
	// APIServerHost is the host of the kube-apiserver in environment variables of system components. Empty means that none are set.
	APIServerHost string
	// SchedulerName is the scheduler that a webhook sets in pods. Empty means the default scheduler.
	SchedulerName string
	// DefaultNotReadyTolerationSeconds and DefaultUnreachableTolerationSeconds are those of system components. They may be nil.
	DefaultNotReadyTolerationSeconds, DefaultUnreachableTolerationSeconds *int64
	// SystemComponentsTolerations are additional tolerations of system components, besides those for the taints of their nodes.
	SystemComponentsTolerations []corev1.Toleration
	// NodeAgentDelay is within which time nodes apply a new configuration. Nil means the default.
	NodeAgentDelay *metav1.Duration
}

// ForShoot returns the configuration of the resource manager of a shoot, whose source is the namespace of the control plane and whose
// target is the shoot.
func ForShoot(o ShootOptions) resourcemanagerconfigv1alpha1.ResourceManagerConfiguration {
	c := resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
	c.LeaderElection.LeaderElect = new(true)
	c.LeaderElection.ResourceNamespace = o.Namespace
	c.SourceClientConnection.Namespaces = []string{o.Namespace}
	c.TargetClientConnection = &resourcemanagerconfigv1alpha1.ClientConnection{}
	c.TargetClientConnection.Kubeconfig = shootaccess.PathKubeconfig
	c.Controllers.ClusterID = &o.ClusterIdentity
	c.Controllers.GarbageCollector.Enabled = true
	c.Controllers.TokenRequestor.Enabled = true
	if o.Workerless {
		return c
	}
	c.Controllers.CSRApprover.Enabled, c.Controllers.CSRApprover.MachineNamespace = true, &o.Namespace
	c.Controllers.NodeCriticalComponents.Enabled = true
	c.Controllers.NodeAgentReconciliationDelay.Enabled = true
	c.Controllers.NodeAgentReconciliationDelay.MaxDelay = o.NodeAgentDelay
	c.Webhooks.HighAvailabilityConfig.Enabled = true
	c.Webhooks.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds = o.DefaultNotReadyTolerationSeconds
	c.Webhooks.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds = o.DefaultUnreachableTolerationSeconds
	c.Webhooks.KubernetesServiceHost.Enabled, c.Webhooks.KubernetesServiceHost.Host = o.APIServerHost != "", o.APIServerHost
	c.Webhooks.PodSchedulerName.Enabled = o.SchedulerName != ""
	if o.SchedulerName != "" {
		c.Webhooks.PodSchedulerName.SchedulerName = &o.SchedulerName
	}
	c.Webhooks.PodTopologySpreadConstraints.Enabled = true
	c.Webhooks.ProjectedTokenMount.Enabled = true
	c.Webhooks.SeccompProfile.Enabled = true
	c.Webhooks.NodeAgentAuthorizer.Enabled, c.Webhooks.NodeAgentAuthorizer.MachineNamespace = true, &o.Namespace
	c.Webhooks.SystemComponentsConfig.Enabled = true
	c.Webhooks.SystemComponentsConfig.NodeSelector = map[string]string{constants.WorkerPoolSystemComponents: "true"}
	c.Webhooks.SystemComponentsConfig.PodNodeSelector = map[string]string{constants.WorkerPoolSystemComponents: "true"}
	c.Webhooks.SystemComponentsConfig.PodTolerations = append([]corev1.Toleration{
		{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists},
	}, o.SystemComponentsTolerations...)
	return c
}

// ForVirtualGarden returns the configuration of the resource manager of a virtual garden, whose source is the namespace of the control plane.
// Its objects are in a few namespaces, so that it does not watch those of projects. There are no nodes and no pods.
func ForVirtualGarden(namespace string, additionalTargetNamespaces []string) resourcemanagerconfigv1alpha1.ResourceManagerConfiguration {
	c := ForShoot(ShootOptions{Namespace: namespace, Workerless: true})
	c.TargetClientConnection.Namespaces = []string{
		constants.GardenNamespace, metav1.NamespaceSystem, constants.GardenerShootIssuerNamespace, constants.GardenerSystemPublicNamespace,
	}
	for _, name := range additionalTargetNamespaces {
		if !slices.Contains(c.TargetClientConnection.Namespaces, name) {
			c.TargetClientConnection.Namespaces = append(c.TargetClientConnection.Namespaces, name)
		}
	}
	return c
}

// URL is the URL of the resource manager's webhooks for the kube-apiserver of the cluster, which runs in the same namespace.
func URL(of instance.Kind, namespace string) string {
	return "https://" + of.Name(Name) + "." + namespace
}

// AuthorizerKubeconfig is the kubeconfig of the kube-apiserver's authorization webhook for node agents, which the resource manager serves. It
// has no credentials: the response contains nothing that the request does not.
func AuthorizerKubeconfig(namespace string, caBundle []byte) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[Name] = &clientcmdapi.Cluster{Server: URL(instance.Shoot, namespace) + PathNodeAgentAuthorizer, CertificateAuthorityData: caBundle}
	config.AuthInfos[Name] = &clientcmdapi.AuthInfo{}
	config.Contexts[Name] = &clientcmdapi.Context{Cluster: Name, AuthInfo: Name}
	config.CurrentContext = Name
	return clientcmd.Write(*config)
}

// TargetObjects renders what the resource manager of a shoot needs in the shoot: its permissions, and the webhook configurations. They are for
// a ManagedResource. The gardenlet, or gardener-operator, grants it the permissions that it needs to apply that, and requests its first token.
func TargetObjects(v Values) []client.Object {
	// When the ManagedResource is deleted, the resource manager needs its permissions until all objects are deleted.
	meta := metav1.ObjectMeta{Name: targetRole, Annotations: map[string]string{resourcesv1alpha1.KeepObject: "true"}}
	objects := []client.Object{
		// It applies objects of any kind, so it needs all permissions.
		&rbacv1.ClusterRole{ObjectMeta: *meta.DeepCopy(), Rules: everything()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Name}},
		},
	}
	if v.ServerSecret == "" {
		return objects
	}
	return append(objects, Webhooks(&v.Config, Scope{URL: URL(v.Of, v.Namespace), Shoot: true, CABundle: v.CABundle})...)
}

// forShoot changes the process of a seed to that of a shoot.
func (v Values) forShoot(process *gardenerprocess.Values) {
	process.PriorityClass = v.Of.PriorityClass(constants.PriorityClassNameShootControlPlane400)
	process.Resources = workload.Requests("5m", "40Mi")
	process.PodLabels[constants.GardenRole] = constants.GardenRoleControlPlane
	process.PodLabels[kubeapiserver.PolicyLabel(v.Of)] = constants.NetworkPolicyAllowed
	process.Files = append(process.Files, gardenerprocess.File{Volume: shootaccess.Volume(v.Shoot.GenericKubeconfig, Name), Path: shootaccess.MountPath})
}

// sourceObjects renders what it may do in the namespace of the control plane, and the request for its token.
func (v Values) sourceObjects(w workload.Workload) []client.Object {
	const read = "get list watch"
	return []client.Object{
		shootaccess.Secret(v.Namespace, Name),
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: w.Name, Labels: w.Labels},
			Rules: []rbacv1.PolicyRule{
				workload.Rule("resources.gardener.cloud", "managedresources", "patch "+read),
				workload.Rule("resources.gardener.cloud", "managedresources/status", "patch"),
				// The tokens that it requests, kubeconfigs, and the garbage of both.
				workload.Rule("", "secrets configmaps", "create delete patch update "+read),
				workload.Rule("", "events", "create patch"),
				workload.Rule("coordination.k8s.io", "leases", "create get update"),
				workload.Rule("machine.sapcloud.io", "machines", read),
			},
		},
		w.RoleBinding(v.Namespace, w.Name, w.Name),
	}
}
