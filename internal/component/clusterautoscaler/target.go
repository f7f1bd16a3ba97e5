package clusterautoscaler

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/component/workload"
)

const (
	targetRole = "gardener.cloud:target:cluster-autoscaler"
	// statusConfigMap is written by the process, and priorityConfigMap has the priorities of groups.
	statusConfigMap   = "cluster-autoscaler-status"
	priorityConfigMap = "cluster-autoscaler-priority-expander"
	prioritiesKey     = "priorities"
)

// dynamicResourcesSince is the version of Kubernetes from which on the original's image reads devices.
var dynamicResourcesSince = semver.MustParse("1.35.0")

// TargetObjects renders its permissions in the shoot and, if pools have priorities, the ConfigMap with them. Without, that ConfigMap is the user's.
func TargetObjects(v Values) ([]client.Object, error) {
	version, err := semver.NewVersion(v.KubernetesVersion)
	if err != nil {
		return nil, fmt.Errorf("version of Kubernetes %q: %w", v.KubernetesVersion, err)
	}
	rules := []rbacv1.PolicyRule{
		workload.Rule("", "nodes", "get list update watch"),
		workload.Rule("", "pods/eviction", "create"),
		workload.Rule("", "pods/status", "update"),
		workload.Rule("", "events", "create patch"),
		// What the scheduler decides by.
		workload.Rule("", "namespaces persistentvolumeclaims persistentvolumes pods replicationcontrollers services", "get list watch"),
		workload.Rule("apps", "daemonsets replicasets statefulsets", "get list watch"),
		workload.Rule("batch", "cronjobs jobs", "get list watch"),
		workload.Rule("policy", "poddisruptionbudgets", "get list watch"),
		workload.Rule("storage.k8s.io", "csidrivers csinodes csistoragecapacities storageclasses volumeattachments", "get list watch"),
	}
	if !version.LessThan(dynamicResourcesSince) {
		rules = append(rules, workload.Rule("resource.k8s.io", "deviceclasses resourceclaims resourceslices", "get list watch"))
	}
	account := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Name}}
	named := func(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
		rule.ResourceNames = names
		return rule
	}
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: targetRole}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: targetRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole}, Subjects: account,
		},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: targetRole}, Rules: []rbacv1.PolicyRule{
			workload.Rule("coordination.k8s.io", "leases", "create"),
			named(workload.Rule("coordination.k8s.io", "leases", "get update"), Name),
			workload.Rule("", "configmaps", "create get list watch"), // the original's image watches all of the namespace for that of priorities
			named(workload.Rule("", "configmaps", "delete update"), statusConfigMap),
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: targetRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: targetRole}, Subjects: account,
		},
	}
	if !hasPriorities(v.MachineDeployments) {
		return objects, nil
	}
	priorities := map[int32][]string{}
	for _, d := range v.MachineDeployments {
		priority := ptr.Deref(d.Priority, 0)
		priorities[priority] = append(priorities[priority], d.Name)
	}
	text, err := yaml.Marshal(priorities)
	if err != nil {
		return nil, err
	}
	return append(objects, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: priorityConfigMap}, Data: map[string]string{prioritiesKey: string(text)},
	}), nil
}
