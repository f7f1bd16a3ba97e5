package cloudcontroller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What a load balancer is like, TestLoadBalancers in test/integration/providerlocal shows.
func TestRender(t *testing.T) {
	b := &balancer{namespace: "infra-a", machines: map[string]string{"app": "machine"}}
	for name, tc := range map[string]struct {
		namespace string
		spec      corev1.ServiceSpec
		refused   string
	}{
		"fine":           {namespace: "default", spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}}},
		"a long name":    {namespace: strings.Repeat("a", 62), spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}}},
		"a longer name":  {namespace: strings.Repeat("a", 63)},
		"no node ports":  {namespace: "default", spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}, refused: "spec.ports: port 80 has no node port"},
		"a local policy": {namespace: "default", spec: corev1.ServiceSpec{ExternalTrafficPolicy: "Local"}, refused: "spec.externalTrafficPolicy: Local is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := b.render("lb", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "web"}, Spec: tc.spec})
			if tc.refused != "" || err != nil {
				if err == nil || tc.refused == "" || !strings.HasPrefix(err.Error(), tc.refused) {
					t.Errorf("render() is %v, want %q", err, tc.refused)
				}
				return
			}
			if problems := validation.IsValidLabelValue(got.Labels[ServiceLabel]); len(problems) > 0 {
				t.Errorf("label %q: %v", got.Labels[ServiceLabel], problems)
			}
		})
	}
}
