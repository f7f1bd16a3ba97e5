package credentials

import (
	"crypto/x509"
	"encoding/pem"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/secrets"
)

// Behind a gateway that ends connections, the name in the generic kubeconfig has to be that of one shoot only. The certificate has both names.
func TestGenericKubeconfig(t *testing.T) {
	for name, tc := range map[string]struct {
		terminates bool
		want       string
	}{
		"passed through": {want: "kube-apiserver"},
		"terminated":     {terminates: true, want: "kube-apiserver.shoot--a--b.svc"},
	} {
		t.Run(name, func(t *testing.T) {
			set := New(Values{SeedAPI: fake.NewFakeClient(), Namespace: "shoot--a--b", TerminatesTLS: tc.terminates, Clock: clock.RealClock{}})
			for _, err := range []error{set.Open(t.Context()), set.Etcd(t.Context()), set.Rest(t.Context())} {
				if err != nil {
					t.Fatal(err)
				}
			}
			all, err := set.All()
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.Load(all.Current(constants.SecretNameGenericTokenKubeconfig).Data[secrets.DataKeyKubeconfig])
			if err != nil {
				t.Fatal(err)
			}
			for _, cluster := range config.Clusters {
				if cluster.Server != "https://"+tc.want {
					t.Errorf("the server is %q, want %q", cluster.Server, tc.want)
				}
			}
			block, _ := pem.Decode(all.Current(KubeAPIServer).Data[secrets.DataKeyCertificate])
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if err := certificate.VerifyHostname(tc.want); err != nil {
				t.Error(err)
			}
		})
	}
}
