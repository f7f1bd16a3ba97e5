// Package gardenlet deploys the gardenlet, the agent of a seed.
package gardenlet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/dependencywatchdog"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/etcddruid"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/component/priorityclass"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
)

// Names of objects.
const (
	// Name is the name of the Deployment.
	Name = "gardenlet"
	// KubeconfigSecret is the Secret with the kubeconfig of the gardenlet for the garden, unless the configuration names another.
	KubeconfigSecret = "gardenlet-kubeconfig"
	// BootstrapSecret is the Secret with the bootstrap kubeconfig, unless the configuration names another.
	BootstrapSecret = "gardenlet-kubeconfig-bootstrap"

	// LeaseName is the Lease that the leader holds, unless the configuration names another.
	LeaseName = "gardenlet-leader-election"
	// GuardName and GuardRole are the names of the objects, and of the ClusterRole and its binding, of the process that rolls an update back.
	GuardName = "gardenlet-guard"
	GuardRole = "gardener.cloud:system:gardenlet-guard"

	role = "gardener.cloud:system:gardenlet"

	overwriteName = "gardenlet-imagevector-overwrite"
	overwriteDir  = "/etc/gardener/imagevector-overwrite"
	overwriteFile = "images_overwrite.yaml"
)

// Values are what a gardenlet is deployed with.
type Values struct {
	// Namespace is where it runs: "garden" in every seed.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. One of them leads.
	Replicas int32
	// Config is its configuration. Objects overwrites ports and the kubeconfig of the seed, and sets the names of the Secrets if they are
	// not set.
	Config gardenletconfigv1alpha1.GardenletConfiguration
	// BootstrapKubeconfig is for the first start. The gardenlet deletes its Secret, so it has to be empty once there is a KubeconfigSecret.
	BootstrapKubeconfig []byte
	// ImageVectorOverwrite is a file that names other images than those of the release. Empty for none.
	ImageVectorOverwrite string
}

// Objects renders a gardenlet for its seed.
func Objects(v Values) ([]client.Object, error) {
	config := v.Config.DeepCopy()
	config.APIVersion, config.Kind = gardenletconfigv1alpha1.SchemeGroupVersion.String(), "GardenletConfiguration"
	config.Server.HealthProbes = &gardenletconfigv1alpha1.Server{Port: gardenletconfigv1alpha1.DefaultHealthProbesPort}
	config.Server.Metrics = &gardenletconfigv1alpha1.Server{Port: gardenletconfigv1alpha1.DefaultMetricsPort}
	if config.SeedClientConnection != nil {
		config.SeedClientConnection.Kubeconfig = ""
	}
	if config.GardenClientConnection == nil {
		config.GardenClientConnection = &gardenletconfigv1alpha1.GardenClientConnection{}
	}
	garden := config.GardenClientConnection
	if garden.KubeconfigSecret == nil {
		garden.KubeconfigSecret = &corev1.SecretReference{Namespace: v.Namespace, Name: KubeconfigSecret}
	}
	if garden.BootstrapKubeconfig == nil {
		garden.BootstrapKubeconfig = &corev1.SecretReference{Namespace: v.Namespace, Name: BootstrapSecret}
	}
	process := gardenerprocess.Values{
		Name: Name, Role: Name, Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameSeedSystemCritical, Config: config,
		Ports:     []corev1.ContainerPort{{Name: "metrics", ContainerPort: gardenletconfigv1alpha1.DefaultMetricsPort, Protocol: corev1.ProtocolTCP}},
		Ready:     workload.HTTPProbe("/readyz", gardenletconfigv1alpha1.DefaultHealthProbesPort, corev1.URISchemeHTTP),
		Live:      workload.HTTPProbe("/healthz", gardenletconfigv1alpha1.DefaultHealthProbesPort, corev1.URISchemeHTTP),
		Resources: workload.Requests("50m", "100Mi"),
		// The condition of a ManagedSeed or Gardenlet has the last error, too.
		TerminationMessage: corev1.TerminationMessageFallbackToLogsOnError,
		// The garden may be in any network; control planes and the API server of the seed are in this one.
		PodLabels: map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
			constants.NetworkPolicyToPublicNetworks: constants.NetworkPolicyAllowed, constants.NetworkPolicyToPrivateNetworks: constants.NetworkPolicyAllowed,
			workload.AllShootsPolicyLabel(kubeapiserver.Name, kubeapiserver.Port):                       constants.NetworkPolicyAllowed,
			workload.AllShootsPolicyLabel(etcd.ServiceName(instance.Shoot, etcd.Main), etcd.PortBackup): constants.NetworkPolicyAllowed,
		},
	}
	var overwrite client.Object
	if v.ImageVectorOverwrite != "" {
		overwrite = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: overwriteName, Labels: process.Workload().Labels},
			Data:       map[string]string{overwriteFile: v.ImageVectorOverwrite},
		}
		process.Files = []gardenerprocess.File{{Volume: workload.ConfigMapVolume(overwriteName, overwriteName), Path: overwriteDir}}
		process.Env = []corev1.EnvVar{{Name: imagevector.OverwriteEnv, Value: overwriteDir + "/" + overwriteFile}}
		process.PodAnnotations = map[string]string{"checksum/imagevector-overwrite": workload.Checksum(v.ImageVectorOverwrite)}
	}
	objects, err := process.Objects()
	if err != nil {
		return nil, err
	}
	w := process.Workload()
	objects = append([]client.Object{priorityclass.SeedCritical()}, objects...)
	objects = append(objects, w.Service("metrics", gardenletconfigv1alpha1.DefaultMetricsPort))
	objects = append(objects, w.ClusterRole(role, rules()...)...)
	if overwrite != nil {
		objects = append(objects, overwrite)
	}
	if len(v.BootstrapKubeconfig) > 0 {
		objects = append(objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: garden.BootstrapKubeconfig.Namespace, Name: garden.BootstrapKubeconfig.Name, Labels: w.Labels},
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{"kubeconfig": v.BootstrapKubeconfig},
		})
	}
	return objects, nil
}

// rules are the permissions of a gardenlet in its seed. They are for all namespaces, as it creates those of control planes and of extensions, and
// could grant itself in them what it lacked. test/rights compares them with what it does.
func rules() []rbacv1.PolicyRule {
	const (
		read   = "get list watch"
		deploy = "create delete patch " + read
	)
	return []rbacv1.PolicyRule{
		workload.Rule("", "namespaces services", deploy),
		workload.Rule("", "serviceaccounts", "create delete get patch"),
		workload.Rule("", "configmaps secrets", deploy+" update"),
		workload.Rule("", "pods", "delete "+read),
		workload.Rule("", "persistentvolumeclaims", "deletecollection"),
		workload.Rule("", "events", "create patch"),
		workload.Rule("events.k8s.io", "events", "create patch"),
		workload.Rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations validatingwebhookconfigurations", "create delete patch"),
		workload.Rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "list"), // errors name the one of an extension that does not respond
		workload.Rule("apiextensions.k8s.io", "customresourcedefinitions", "create patch "+read),
		workload.Rule("apps", "deployments", deploy+" deletecollection"),
		workload.Rule("apps", "replicasets", "deletecollection"),
		workload.Rule("apps", "statefulsets", "deletecollection "+read),
		workload.Rule("autoscaling", "horizontalpodautoscalers", "create delete get patch"),
		workload.Rule("autoscaling.k8s.io", "verticalpodautoscalercheckpoints verticalpodautoscalers", deploy),
		// Its own for the leader election, and those of components.
		workload.Rule("coordination.k8s.io", "leases", "create delete get list patch update watch"),
		workload.Rule("discovery.k8s.io", "endpointslices", read),
		workload.Rule("druid.gardener.cloud", "etcds", deploy),
		workload.Rule("druid.gardener.cloud", "etcdcopybackupstasks", "create delete "+read),
		workload.Rule("extensions.gardener.cloud", "backupbuckets backupentries bastions containerruntimes controlplanes dnsrecords extensions "+
			"infrastructures networks operatingsystemconfigs selfhostedshootexposures workers", deploy),
		// The states of a control plane from another seed.
		workload.Rule("extensions.gardener.cloud", "backupentries/status containerruntimes/status controlplanes/status dnsrecords/status extensions/status "+
			"infrastructures/status networks/status operatingsystemconfigs/status selfhostedshootexposures/status workers/status", "patch"),
		workload.Rule("extensions.gardener.cloud", "clusters", "create delete get patch"),
		workload.Rule("gateway.networking.k8s.io", "gateways", deploy),
		workload.Rule("gateway.networking.k8s.io", "gatewayclasses tlsroutes", "create delete patch"),
		workload.Rule("gateway.networking.k8s.io", "tlsroutes", "list"), // the gateway of a former handler stays while routes use it
		workload.Rule("operator.gardener.cloud", "gardens", "list"),     // gardener-operator has part of its work where there is one
		workload.Rule("machine.sapcloud.io", "machineclasses machinedeployments machines machinesets", "delete patch "+read),
		workload.Rule("networking.k8s.io", "networkpolicies", deploy),
		workload.Rule("networking.k8s.io", "ingresses", "list"), // those of extensions may be advertised in the status of a Shoot
		workload.Rule("policy", "poddisruptionbudgets", "create delete get patch"),
		workload.Rule("resources.gardener.cloud", "managedresources", deploy),
		workload.Rule("scheduling.k8s.io", "priorityclasses", "create get patch"),
		workload.Rule("rbac.authorization.k8s.io", "clusterrolebindings clusterroles rolebindings roles", "create delete patch"),
		// The ClusterRoles of these components grant more than it has. Its own may do so in the next release.
		{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"bind", "escalate"},
			ResourceNames: deployedRoles(),
		},
		// What it grants to the cluster-autoscaler in the namespace of a control plane.
		workload.Rule("machine.sapcloud.io", "machinedeployments machines", "update"),
		// What is deployed before it updates itself, which is restored if it has to be.
		{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings", "clusterroles"}, Verbs: []string{"get"},
			ResourceNames: []string{role, GuardRole},
		},
		// So does the Role of this component: the drivers of all infrastructures run with it.
		{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"bind", "escalate"},
			ResourceNames: []string{machinecontrollermanager.Name},
		},
		// What it grants to the gardener-resource-manager in the namespace of a control plane.
		workload.Rule("resources.gardener.cloud", "managedresources/finalizers", "update"),
		workload.Rule("resources.gardener.cloud", "managedresources/status", "patch"),
	}
}

// deployedRoles are the names of the ClusterRoles of the components that a gardenlet deploys into its seed.
func deployedRoles() []string {
	roles := []string{etcddruid.ClusterRole, gateway.ClusterRole, resourcemanager.Name, role, GuardRole}
	return slices.Concat(roles, verticalpodautoscaler.ClusterRoles(), dependencywatchdog.ClusterRoles())
}
