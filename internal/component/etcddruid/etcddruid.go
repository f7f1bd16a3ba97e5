// Package etcddruid deploys etcd-druid, which runs the etcd clusters of control planes.
package etcddruid

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// Name is the name of the Deployment.
	Name = "etcd-druid"
	// ClusterRole is the name of its ClusterRole.
	ClusterRole = "gardener.cloud:system:etcd-druid"
)

const (
	healthPort  = 8081
	metricsPort = 8080
)

// Values are what etcd-druid is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. One of them leads.
	Replicas int32
	// Config is its configuration, with the images of etcd. Objects overwrites ports, leader election and client connection.
	Config etcddruidconfigv1alpha1.EtcdDruidConfiguration
}

// Objects renders etcd-druid for the cluster that it runs in.
func Objects(v Values) ([]client.Object, error) {
	config := v.Config.DeepCopy()
	config.APIVersion, config.Kind = etcddruidconfigv1alpha1.SchemeGroupVersion.String(), "EtcdDruidConfiguration"
	etcddruidconfigv1alpha1.SetDefaults(config)
	config.ClientConnection.Kubeconfig = ""
	config.LeaderElection.ResourceNamespace = v.Namespace
	config.Server.HealthProbes = &etcddruidconfigv1alpha1.Server{Port: healthPort}
	config.Server.Metrics = &etcddruidconfigv1alpha1.Server{Port: metricsPort}
	process := gardenerprocess.Values{
		Name: Name, Labels: map[string]string{constants.GardenRole: Name}, Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameSeedSystem800, Config: config,
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}},
		Ready: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP), Live: workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
		Resources: workload.Requests("25m", "50Mi"),
		PodLabels: map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		},
	}
	objects, err := process.Objects()
	if err != nil {
		return nil, err
	}
	w := process.Workload()
	objects = append(objects, w.Service("metrics", metricsPort))
	const (
		read  = "get list watch"
		owned = "create deletecollection patch " + read
	)
	return append(objects, w.ClusterRole(ClusterRole,
		workload.Rule("druid.gardener.cloud", "etcds", "patch "+read),
		workload.Rule("druid.gardener.cloud", "etcdcopybackupstasks", read),
		workload.Rule("druid.gardener.cloud", "etcds/status etcdcopybackupstasks/status", "patch"),
		// Objects that they own: the admission plugin OwnerReferencesPermissionEnforcement checks it.
		workload.Rule("druid.gardener.cloud", "etcds/finalizers etcdcopybackupstasks/finalizers", "update"),
		workload.Rule("", "configmaps serviceaccounts services", owned),
		workload.Rule("apps", "statefulsets", "delete "+owned),
		workload.Rule("policy", "poddisruptionbudgets", owned),
		// It grants these permissions to etcd-backup-restore, so it needs them too.
		workload.Rule("rbac.authorization.k8s.io", "rolebindings roles", owned),
		// Those of members, and its own for the leader election.
		workload.Rule("coordination.k8s.io", "leases", "update "+owned),
		workload.Rule("batch", "jobs", "create patch "+read),
		// Volumes grow, and are replaced by others when members move to other zones.
		workload.Rule("", "persistentvolumeclaims", "delete patch "+read),
		workload.Rule("", "persistentvolumes", "get"),
		workload.Rule("", "nodes", "list"),
		workload.Rule("", "pods", "delete "+read),
		workload.Rule("", "secrets", "get"),
		workload.Rule("", "events", "create patch"), // of the leader election
		workload.Rule("events.k8s.io", "events", "create patch"),
	)...), nil
}
