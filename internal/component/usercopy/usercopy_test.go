package usercopy

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIs(t *testing.T) {
	for name, tc := range map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"credentials for the infrastructure": {metav1.ObjectMeta{Name: "cloudprovider"}, true},
		"credentials for DNS":                {metav1.ObjectMeta{Name: DNSRecord("crazy-botany", "external")}, true},
		"a Secret of spec.resources":         {metav1.ObjectMeta{Name: Reference("Secret", "a")}, true},
		"a WorkloadIdentity of it":           {metav1.ObjectMeta{Name: Reference("WorkloadIdentity", "a")}, true},
		"the role of a reference":            {metav1.ObjectMeta{Name: "a", Labels: map[string]string{"gardener.cloud/role": "resource-reference"}}, true},
		"a Secret of Gardener":               {metav1.ObjectMeta{Name: "shoot-access-kube-scheduler"}, false},
		"one whose name only resembles":      {metav1.ObjectMeta{Name: "cloudprovider-config"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Is(&corev1.Secret{ObjectMeta: tc.meta}); got != tc.want {
				t.Errorf("Is() is %t", got)
			}
		})
	}
}
