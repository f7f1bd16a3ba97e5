package gardenctl

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/pkg/secrets"
)

// testGarden makes the cluster the runtime cluster of a garden, too. An operator gets a kubeconfig when the garden has CAs.
func testGarden(t *testing.T, u *user) {
	u.must(t, "target", "unset")
	u.fails(t, "it has to be the runtime cluster of the garden", "garden", "kubeconfig")
	if err := errors.Join(apiextensionsv1.AddToScheme(u.Scheme), operatorv1alpha1.AddToScheme(u.Scheme)); err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Operator()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(u.Config, client.Options{Scheme: u.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	u.fails(t, "there are 0 Gardens", "garden", "kubeconfig")
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &operatorv1alpha1.Garden{
		ObjectMeta: metav1.ObjectMeta{Name: "live"},
		Spec: operatorv1alpha1.GardenSpec{
			RuntimeCluster: operatorv1alpha1.RuntimeCluster{
				Ingress: operatorv1alpha1.Ingress{
					Domains: []operatorv1alpha1.DNSDomain{{Name: "ingress.garden.example.com"}}, Controller: corev1beta1.IngressController{Kind: "nginx"},
				},
				Networking: operatorv1alpha1.RuntimeNetworking{Pods: []string{"10.1.0.0/16"}, Services: []string{"10.2.0.0/16"}},
			},
			VirtualCluster: operatorv1alpha1.VirtualCluster{
				DNS:      operatorv1alpha1.DNS{Domains: []operatorv1alpha1.DNSDomain{{Name: "garden.example.com"}}},
				Gardener: operatorv1alpha1.Gardener{ClusterIdentity: "test"},
				Kubernetes: operatorv1alpha1.Kubernetes{Version: "1.36.3", KubeAPIServer: &operatorv1alpha1.KubeAPIServerConfig{
					KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "authentication"}},
				}},
				Maintenance: operatorv1alpha1.Maintenance{TimeWindow: corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}},
				Networking:  operatorv1alpha1.Networking{Services: []string{"100.64.0.0/13"}},
			},
		},
	}); err != nil {
		t.Fatal(err)
	}
	u.fails(t, "no CAs of the kube-apiserver yet", "garden", "kubeconfig")
	manager, err := secrets.New(t.Context(), secrets.Values{Client: c, Namespace: constants.GardenNamespace, Identity: operatorv1alpha1.SecretManagerIdentityOperator})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{constants.SecretNameCACluster, constants.SecretNameCAClient} {
		if _, err := manager.Generate(t.Context(), &secrets.CertificateAuthority{Name: name, CommonName: name}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	u.fails(t, `read ConfigMap "garden/authentication"`, "garden", "kubeconfig", "--oidc")
	if err := c.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "authentication"},
		Data:       map[string]string{"config.yaml": "jwt: [{issuer: {url: https://login.example.com, audiences: [garden]}}]"},
	}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(u.must(t, "garden", "kubeconfig", "-o", "yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://api.garden.example.com" || len(config.CertData) == 0 {
		t.Errorf("the kubeconfig is for %s", config.Host)
	}

	// Users get one without credentials.
	users, err := clientcmd.RESTConfigFromKubeConfig([]byte(u.must(t, "garden", "kubeconfig", "--oidc", "-o", "yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if users.Host != config.Host || string(users.CAData) != string(config.CAData) || users.ExecProvider == nil || len(users.CertData) > 0 {
		t.Errorf("the kubeconfig of users is for %s, with the credentials %v", users.Host, users.ExecProvider)
	}
}
