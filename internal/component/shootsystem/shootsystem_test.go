package shootsystem

import (
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
		"full":       {ClusterIdentity: "shoot--a--b-uid-garden", Info: info, Zones: []string{"z2", "z1"}, FailureTolerance: "zone"},
	} {
		t.Run(name, func(t *testing.T) { golden.Objects(t, name+".yaml", Objects(v)) })
	}
}

func TestReadable(t *testing.T) {
	read := metav1.Verbs{"create", "get", "list", "watch"}
	v := Values{
		Resources: []*metav1.APIResourceList{
			{GroupVersion: "v1", APIResources: []metav1.APIResource{
				{Name: "pods", Verbs: read},
				{Name: "pods/log", Verbs: metav1.Verbs{"get"}},
				{Name: "pods/exec", Verbs: metav1.Verbs{"create", "get"}},
				{Name: "nodes/proxy", Verbs: metav1.Verbs{"create", "delete", "get"}},
				{Name: "secrets", Verbs: read},
				{Name: "configmaps", Verbs: read},
			}},
			{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "things", Verbs: read}, {Name: "keys", Verbs: read}}},
			{GroupVersion: "example.com/v2", APIResources: []metav1.APIResource{{Name: "things", Verbs: read}}},
			{GroupVersion: "a/b/c"},
		},
		EncryptedResources: []string{"configmaps", "secrets", "keys.example.com"},
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "pods", "pods/log"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"get", "list", "watch"}},
	}
	if diff := cmp.Diff(want, v.readable()); diff != "" {
		t.Errorf("readable() (-want +got):\n%s", diff)
	}
}
