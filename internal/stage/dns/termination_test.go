package dns

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// The gateway gets the credentials of the kube-apiserver in its own namespace, and pods of the control plane are sent there. When it passes connections
// through again, it loses them, and new pods are not.
func TestTermination(t *testing.T) {
	for name, tc := range map[string]struct {
		gateway client.ObjectKey
		want    string
	}{
		"of the seed":  {want: "gateway"},
		"of a handler": {gateway: client.ObjectKey{Namespace: "istio-ingress-handler-a", Name: "gateway"}, want: "istio-ingress-handler-a"},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			if err := clusters.Seed.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stagetest.Namespace, UID: "uid"}}); err != nil {
				t.Fatal(err)
			}
			set := credentials.New(credentials.Values{
				SeedAPI: clusters.Seed, Namespace: stagetest.Namespace, TerminatesTLS: true, HostNames: []string{"api.a.example.com"}, Clock: clock.RealClock{},
			})
			all := stagetest.Generate(t, set)
			in := Inputs{Run: clusters.Run(), Hosts: []string{"api.a.example.com"}, Gateway: tc.gateway, Termination: &Termination{Credentials: set}}
			for _, id := range []string{"exposure", "gateway-credentials", "load-balancing"} {
				if err := stagetest.RunTask(t.Context(), t, Tasks(in), id); err != nil {
					t.Fatal(err)
				}
			}
			route := client.ObjectKey{Namespace: stagetest.Namespace, Name: "kube-apiserver"}
			secret := gateway.CredentialsSecret(tc.want, route)
			if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			if got, ok := gateway.RouteOf(secret); !ok || got != route || secret.OwnerReferences[0].UID != "uid" {
				t.Errorf("the Secret is %+v", secret.ObjectMeta)
			}
			for key, want := range map[string][]byte{
				gateway.KeyCertificate: all.Current(credentials.KubeAPIServer).Data["tls.crt"], gateway.KeyProxyPrivateKey: all.Current(credentials.GatewayProxy).Data["tls.key"],
				gateway.KeyClientCA: all.Bundle("ca-client"), gateway.KeyServerCA: all.Bundle("ca"),
			} {
				if diff := cmp.Diff(string(want), string(secret.Data[key])); diff != "" || len(want) == 0 {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
			routed := func(want ...gatewayv1.Hostname) {
				t.Helper()
				r := &gatewayv1.TLSRoute{}
				if err := clusters.Seed.Get(t.Context(), route, r); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, r.Spec.Hostnames); diff != "" {
					t.Errorf("names of the route (-want +got):\n%s", diff)
				}
			}
			internal := gatewayv1.Hostname("kube-apiserver." + stagetest.Namespace + ".svc")
			routed("api.a.example.com", internal)
			configMap := &corev1.ConfigMap{}
			if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "istio-internal-load-balancing"}, configMap); err != nil {
				t.Fatal(err)
			}
			if got, _ := gateway.LoadBalancingOf(configMap); got.Namespace != tc.want || len(got.Hosts) != 1 || got.Hosts[0] != string(internal) {
				t.Errorf("the ConfigMap is %v", configMap.Data)
			}

			in.Termination = nil
			if err := stagetest.RunTask(t.Context(), t, Tasks(in), "exposure"); err != nil {
				t.Fatal(err)
			}
			if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
				t.Errorf("the Secret is still there: %v", err)
			}
			if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(configMap), configMap); !apierrors.IsNotFound(err) {
				t.Errorf("the ConfigMap is still there: %v", err)
			}
			routed("api.a.example.com", internal) // until they are replaced, pods have host aliases
		})
	}
}
