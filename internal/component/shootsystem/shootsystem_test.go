package shootsystem

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	info := Info{
		ProjectName: "a", ShootName: "b", Provider: "local", Region: "local", KubernetesVersion: "1.36.3", Domain: "b.a.external.example",
		ServiceNetworks: []string{"100.64.0.0/13"}, PodNetworks: []string{"100.96.0.0/11", "fd00::/48"}, NodeNetworks: []string{"10.0.0.0/16"},
		MaintenanceBegin: "220000+0000", MaintenanceEnd: "230000+0000", Extensions: []string{"b", "a"},
	}
	for name, v := range map[string]Values{
		"workerless": {Workerless: true, ClusterIdentity: "shoot--a--b-uid-garden", Info: info},
		"full":       {ClusterIdentity: "shoot--a--b-uid-garden", Info: info, Zones: []string{"z2", "z1"}},
	} {
		t.Run(name, func(t *testing.T) { golden.Objects(t, name+".yaml", Objects(v)) })
	}
}

// Viewers may read all resources but Secrets and encrypted ones, and may not connect to pods or nodes.
func TestReadable(t *testing.T) {
	read := metav1.Verbs{"create", "get", "list", "watch"}
	served := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Verbs: read},
			{Name: "pods/log", Verbs: metav1.Verbs{"get"}},
			{Name: "pods/exec", Verbs: metav1.Verbs{"create", "get"}},
			{Name: "nodes/proxy", Verbs: metav1.Verbs{"create", "delete", "get"}},
			{Name: "secrets", Verbs: read},
			{Name: "configmaps", Verbs: read},
			{Name: "bindings", Verbs: metav1.Verbs{"create"}},
		}},
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			{Name: "things", Verbs: read},
			{Name: "things/status", Verbs: metav1.Verbs{"get", "patch", "update"}},
			{Name: "keys", Verbs: read},
			{Name: "keys/status", Verbs: metav1.Verbs{"get"}},
		}},
		{GroupVersion: "example.com/v2", APIResources: []metav1.APIResource{{Name: "things", Verbs: read}}},
		{GroupVersion: "a/b/c"},
	}
	for name, tc := range map[string]struct {
		values  Values
		yes, no []string
	}{
		"without discovery": {yes: []string{"pods", "configmaps", "pods.metrics.k8s.io"}, no: []string{"secrets", "things.example.com"}},
		"with custom resources": {
			values: Values{Resources: served, EncryptedResources: []string{"secrets"}},
			yes:    []string{"pods", "pods/log", "configmaps", "things.example.com", "things/status.example.com", "keys.example.com", "deployments.apps", "pods.metrics.k8s.io"},
			no:     []string{"secrets", "pods/exec", "nodes/proxy", "bindings", "other.example.com"},
		},
		"with encrypted resources": {
			values: Values{Resources: served, EncryptedResources: []string{"secrets", "configmaps", "keys.example.com"}},
			yes:    []string{"pods", "things.example.com"},
			no:     []string{"secrets", "configmaps", "keys.example.com", "keys/status.example.com"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			readable := map[string]bool{}
			for _, rule := range tc.values.readable() {
				if diff := cmp.Diff([]string{"get", "list", "watch"}, rule.Verbs); diff != "" {
					t.Errorf("verbs (-want +got):\n%s", diff)
				}
				if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Resources, "*") || len(rule.NonResourceURLs) > 0 {
					t.Errorf("a rule has a wildcard: %v", rule)
				}
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						readable[strings.TrimSuffix(resource+"."+group, ".")] = true
					}
				}
			}
			for _, resource := range tc.yes {
				if !readable[resource] {
					t.Errorf("%q is not readable", resource)
				}
			}
			for _, resource := range tc.no {
				if readable[resource] {
					t.Errorf("%q is readable", resource)
				}
			}
		})
	}
}

// The role of viewers has exactly the readable rules.
func TestViewers(t *testing.T) {
	bound := map[string]string{}
	var rules []rbacv1.PolicyRule
	for _, object := range Objects(Values{}) {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			if o.Name == "gardener.cloud:system:read-only" {
				rules = o.Rules
			}
			if o.AggregationRule != nil || o.Labels["rbac.authorization.k8s.io/aggregate-to-view"] != "" {
				t.Errorf("ClusterRole %q is aggregated", o.Name) // other roles could add rules
			}
		case *rbacv1.ClusterRoleBinding:
			for _, subject := range o.Subjects {
				if subject.Kind == rbacv1.GroupKind {
					bound[subject.Name] = o.RoleRef.Name
				}
			}
		}
	}
	if len(rules) == 0 {
		t.Error("viewers have no role")
	}
	want := map[string]string{
		"gardener.cloud:system:viewers": "gardener.cloud:system:read-only", "gardener.cloud:project:viewers": "gardener.cloud:system:read-only",
		"gardener.cloud:system:admins": "cluster-admin", "gardener.cloud:project:admins": "cluster-admin",
	}
	if diff := cmp.Diff(want, bound); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}
