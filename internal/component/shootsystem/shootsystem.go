// Package shootsystem renders objects that every shoot has: roles, its identity, priority classes, and network policies for the pods of
// system components.
package shootsystem

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubescheduler"
	"gardener.cloud/gardener/internal/component/priorityclass"
	"gardener.cloud/gardener/internal/component/workload"
)

// ManagedResourceName is the name of the ManagedResource with the objects.
const ManagedResourceName = "shoot-core-system"

// originKey is the key of the identity's origin in its ConfigMap.
const originKey = "origin"

// Values are what the objects depend on.
type Values struct {
	// Workerless says that the cluster has no nodes, and so no pods.
	Workerless bool
	// ClusterIdentity is the identity of the cluster: status.clusterIdentity of the Shoot.
	ClusterIdentity string
	// Info is what is published about the cluster in the ConfigMap shoot-info.
	Info Info
	// Zones are those of the nodes that system components run on.
	Zones []string
	// Resources are those that the API server serves, as discovery returns them: RBAC cannot say "all but secrets", so the role of viewers
	// lists them. Those of Kubernetes are in the role even if they are not in this list, as discovery is incomplete while aggregated API
	// servers are not available.
	Resources []*metav1.APIResourceList
	// EncryptedResources are resources that are encrypted at rest, such as "secrets" or "things.example.com": viewers may not read them.
	EncryptedResources []string
}

// Info is the content of the ConfigMap shoot-info.
type Info struct {
	// ProjectName and ShootName identify the Shoot, Provider and Region are those of its nodes.
	ProjectName, ShootName, Provider, Region string
	// KubernetesVersion is its version.
	KubernetesVersion string
	// Domain is the domain of the cluster: spec.dns.domain of the Shoot.
	Domain string
	// PodNetworks, ServiceNetworks and NodeNetworks are its ranges, one per IP family. A workerless cluster has no pods and nodes.
	PodNetworks, ServiceNetworks, NodeNetworks []string
	// MaintenanceBegin and MaintenanceEnd are the maintenance time window.
	MaintenanceBegin, MaintenanceEnd string
	// Extensions are the types of extensions that the cluster has.
	Extensions []string
}

// Objects renders the objects in the shoot.
func Objects(v Values) []client.Object {
	objects := []client.Object{v.identity(), v.info(), v.kubeSystem()}
	objects = append(objects, access(v)...)
	objects = append(objects, KubeControllerManager()...)
	for _, namespace := range []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		objects = append(objects, &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default", Annotations: map[string]string{
				// It exists in every cluster.
				resourcesv1alpha1.KeepObject: "true",
			}},
			AutomountServiceAccountToken: new(false),
		})
	}
	if v.Workerless {
		return objects
	}
	objects = append(objects, controllers(kubescheduler.Name, "system:kube-scheduler", "system:volume-scheduler")...)
	objects = append(objects, kubelets()...)
	objects = append(objects, priorityclass.Shoot()...)
	return append(objects, policies()...)
}

func (v Values) identity() client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity},
		Immutable:  new(true),
		Data:       map[string]string{constants.ClusterIdentity: v.ClusterIdentity, originKey: constants.ClusterIdentityOriginShoot},
	}
}

func (v Values) info() client.Object {
	i := v.Info
	data := map[string]string{
		"projectName": i.ProjectName, "shootName": i.ShootName, "provider": i.Provider, "region": i.Region,
		"kubernetesVersion": i.KubernetesVersion, "maintenanceBegin": i.MaintenanceBegin, "maintenanceEnd": i.MaintenanceEnd,
		"extensions": strings.Join(slices.Sorted(slices.Values(i.Extensions)), ","),
	}
	if i.Domain != "" {
		data["domain"] = i.Domain
	}
	networks := func(name string, ranges []string) {
		if len(ranges) > 0 {
			data[name+"Network"] = ranges[0] // for clients from before dual-stack
			data[name+"Networks"] = strings.Join(ranges, ",")
		}
	}
	networks("service", i.ServiceNetworks)
	if !v.Workerless {
		networks("pod", i.PodNetworks)
		networks("node", i.NodeNetworks)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ConfigMapNameShootInfo}, Data: data}
}

// kubeSystem labels the namespace for the webhooks of the resource manager. It is not deleted with the shoot, as Kubernetes does not allow that.
func (v Values) kubeSystem() client.Object {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: metav1.NamespaceSystem,
		Labels: map[string]string{
			constants.GardenerPurpose: metav1.NamespaceSystem, resourcesv1alpha1.HighAvailabilityConfigConsider: "true",
			constants.ShootNoCleanup: "true",
		},
		Annotations: map[string]string{resourcesv1alpha1.KeepObject: "true"},
	}}
	if len(v.Zones) > 0 {
		namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigZones] = strings.Join(slices.Sorted(slices.Values(v.Zones)), ",")
	}
	// The failure tolerance type is not set, as it is about the control plane: with it, system components would have to run on different nodes,
	// though there may be only one, and in the zones above, though the zone labels of nodes may have other values.
	return namespace
}

// access renders the bindings of the groups that kubeconfigs of Gardener have.
func access(v Values) []client.Object {
	readOnly := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: constants.ClusterRoleSystemReadOnly}, Rules: v.readable()}
	const admin = "cluster-admin"
	return []client.Object{
		readOnly,
		bindGroup(constants.ShootSystemAdminsGroupName, admin), bindGroup(constants.ShootProjectAdminsGroupName, admin),
		bindGroup(constants.ShootSystemViewersGroupName, readOnly.Name), bindGroup(constants.ShootProjectViewersGroupName, readOnly.Name),
	}
}

// bindGroup binds a group to a ClusterRole, under the name of the group.
func bindGroup(group, role string) client.Object {
	return binding(group, role, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
}

func binding(name, role string, subject rbacv1.Subject) client.Object {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// readable are rules to read all resources but Secrets and encrypted ones.
func (v Values) readable() []rbacv1.PolicyRule {
	hidden := map[schema.GroupResource]bool{{Resource: "secrets"}: true}
	for _, resource := range v.EncryptedResources {
		hidden[schema.ParseGroupResource(resource)] = true
	}
	byGroup := map[string]map[string]bool{}
	add := func(group, resource string) {
		object, _, _ := strings.Cut(resource, "/")
		if hidden[schema.GroupResource{Group: group, Resource: object}] {
			return
		}
		if byGroup[group] == nil {
			byGroup[group] = map[string]bool{}
		}
		byGroup[group][resource] = true
	}
	for group, resources := range builtIn {
		for _, resource := range strings.Fields(resources) {
			add(group, resource)
		}
	}
	for _, list := range v.Resources {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // discovery does not return these
		}
		for _, resource := range list.APIResources {
			// A connection into a pod or a node is more than read access, though the verb is get.
			connects := strings.Contains(resource.Name, "/") && slices.Contains(resource.Verbs, "create")
			if !connects && slices.ContainsFunc(resource.Verbs, func(verb string) bool { return slices.Contains(readVerbs, verb) }) {
				add(gv.Group, resource.Name)
			}
		}
	}
	var rules []rbacv1.PolicyRule
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: slices.Sorted(maps.Keys(byGroup[group])), Verbs: slices.Clone(readVerbs),
		})
	}
	return rules
}

// builtIn are the resources of Kubernetes and metrics-server, by group.
var builtIn = map[string]string{
	"": "componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods pods/log " +
		"pods/status podtemplates replicationcontrollers resourcequotas serviceaccounts services",
	"admissionregistration.k8s.io": "mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations " +
		"validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations",
	"apiextensions.k8s.io":         "customresourcedefinitions",
	"apiregistration.k8s.io":       "apiservices",
	"apps":                         "controllerrevisions daemonsets deployments replicasets statefulsets",
	"autoscaling":                  "horizontalpodautoscalers",
	"batch":                        "cronjobs jobs",
	"certificates.k8s.io":          "certificatesigningrequests",
	"coordination.k8s.io":          "leases",
	"discovery.k8s.io":             "endpointslices",
	"events.k8s.io":                "events",
	"flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
	"metrics.k8s.io":               "nodes pods",
	"networking.k8s.io":            "ingressclasses ingresses ipaddresses networkpolicies servicecidrs",
	"node.k8s.io":                  "runtimeclasses",
	"policy":                       "poddisruptionbudgets",
	"rbac.authorization.k8s.io":    "clusterrolebindings clusterroles rolebindings roles",
	"resource.k8s.io":              "deviceclasses resourceclaims resourceclaimtemplates resourceslices",
	"scheduling.k8s.io":            "priorityclasses",
	"storage.k8s.io":               "csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses",
}

var readVerbs = []string{"get", "list", "watch"}

// KubeControllerManager renders the permissions of kube-controller-manager, in any cluster.
func KubeControllerManager() []client.Object {
	return controllers(kubecontrollermanager.Name, "system:kube-controller-manager")
}

// controllers renders the permissions of a component of the control plane, also those to authenticate and authorize requests for its metrics.
func controllers(name string, roles ...string) []client.Object {
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: name}
	target := "gardener.cloud:target:" + name
	objects := []client.Object{
		binding(target+":auth-delegator", "system:auth-delegator", subject),
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: target + ":auth-reader"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
			Subjects:   []rbacv1.Subject{subject},
		},
	}
	for i, role := range roles {
		bound := target
		if i > 0 {
			bound += "-volume" // kube-scheduler has two
		}
		objects = append(objects, binding(bound, role, subject))
	}
	return objects
}

// kubelets allows the kube-apiserver to use the API of kubelets, such as for logs and to run commands in containers.
func kubelets() []client.Object {
	const name = "system:apiserver:kubelet"
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			workload.Rule("", "nodes/proxy nodes/stats nodes/log nodes/spec nodes/metrics nodes/healthz nodes/pods nodes/configz", "*"),
		}},
		binding(name, name, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: kubeapiserver.UserName}),
	}
}
