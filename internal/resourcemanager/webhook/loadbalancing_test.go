package webhook

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/shootaccess"
)

const apiServer = "kube-apiserver.n.svc"

func internalService(change ...func(*corev1.Service)) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: "istio-ingressgateway-internal"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.0.0.7", ClusterIPs: []string{"10.0.0.7"}},
	}
	for _, c := range change {
		c(service)
	}
	return service
}

// Pods with the generic kubeconfig are sent to the gateway, if all that it needs is there.
func TestLoadBalance(t *testing.T) {
	there := gateway.LoadBalancing{Namespace: "gateway", Hosts: []string{apiServer}}.ConfigMap("n")
	projected := shootaccess.Volume("generic-token-kubeconfig-1234", "any")
	alias := func(ips ...string) (all []corev1.HostAlias) {
		for _, ip := range ips {
			all = append(all, corev1.HostAlias{IP: ip, Hostnames: []string{apiServer}})
		}
		return all
	}
	foreign := corev1.HostAlias{IP: "192.0.2.1", Hostnames: []string{"other.example.com"}}
	for name, tc := range map[string]struct {
		objects []client.Object
		volume  corev1.Volume
		aliases []corev1.HostAlias // that the pod has before
		want    []corev1.HostAlias // nil: the pod is not changed
	}{
		"with a projected volume": {objects: []client.Object{there, internalService()}, volume: projected, want: alias("10.0.0.7")},
		"with a volume of the Secret": {
			objects: []client.Object{there, internalService()}, want: alias("10.0.0.7"),
			volume: corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "generic-token-kubeconfig"}}},
		},
		"with two families": {
			objects: []client.Object{there, internalService(func(s *corev1.Service) { s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, "fd00::7") })},
			volume:  projected, want: alias("10.0.0.7", "fd00::7"),
		},
		"with other aliases": {
			objects: []client.Object{there, internalService()}, volume: projected, aliases: []corev1.HostAlias{foreign},
			want: append([]corev1.HostAlias{foreign}, alias("10.0.0.7")...),
		},
		"with the alias already": {objects: []client.Object{there, internalService()}, volume: projected, aliases: alias("192.0.2.1")},
		"without the kubeconfig": {objects: []client.Object{there, internalService()}, volume: corev1.Volume{VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: "other"},
		}}},
		"without the ConfigMap":          {objects: []client.Object{internalService()}, volume: projected},
		"with a ConfigMap without hosts": {objects: []client.Object{gateway.LoadBalancing{Namespace: "gateway"}.ConfigMap("n"), internalService()}, volume: projected},
		"with that of another namespace": {
			objects: []client.Object{gateway.LoadBalancing{Namespace: "gateway", Hosts: []string{apiServer}}.ConfigMap("other"), internalService()}, volume: projected,
		},
		"without the Service": {objects: []client.Object{there}, volume: projected},
		"with a Service without an address": {
			objects: []client.Object{there, internalService(func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"None"} })}, volume: projected,
		},
		"with a load balancer instead": {
			objects: []client.Object{there, internalService(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })}, volume: projected,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Labels: map[string]string{"app": "x"}},
				Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{Name: "first"}, tc.volume}, HostAliases: tc.aliases},
			}
			want := pod.DeepCopy()
			if tc.want != nil {
				want.Spec.HostAliases = tc.want
				want.Labels["networking.resources.gardener.cloud/to-all-istio-ingresses-istio-ingressgateway-internal-tcp-9443"] = "allowed"
			}
			if err := loadBalance(t.Context(), fake.NewClientBuilder().WithObjects(tc.objects...).Build(), pod); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, pod); diff != "" {
				t.Errorf("the pod (-want +got):\n%s", diff)
			}
		})
	}
}

// The API server admits the pod as it is, and knows why.
func TestLoadBalanceFails(t *testing.T) {
	broken := errors.New("connection refused")
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
	}).Build()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{shootaccess.Volume("generic-token-kubeconfig-1234", "any")}}}
	if err := loadBalance(t.Context(), c, pod); !errors.Is(err, broken) {
		t.Errorf("loadBalance() = %v, want %v", err, broken)
	}
}
