package instance_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/test/golden"
)

// The names and priorities are those of the control plane of a virtual garden, with the other differences that follow from Of.
func TestVirtualGarden(t *testing.T) {
	const of, namespace = instance.VirtualGarden, "garden"
	objects := etcd.Objects(etcd.Values{Of: of, Namespace: namespace, Role: etcd.Main, Replicas: 1})
	for name, render := range map[string]func() ([]client.Object, error){
		"kube-apiserver": func() ([]client.Object, error) {
			return kubeapiserver.Objects(kubeapiserver.Values{
				Of: of, Namespace: namespace, Image: "kube-apiserver", Version: "1.36.3", Replicas: 2, Workerless: true, ServiceNetworks: []string{"100.64.0.0/13"},
				Garden: &kubeapiserver.Garden{SeedsKubeconfig: []byte("seeds"), ShootsKubeconfig: []byte("shoots")},
			})
		},
		"kube-controller-manager": func() ([]client.Object, error) {
			return kubecontrollermanager.Objects(kubecontrollermanager.Values{Of: of, Namespace: namespace, Image: "kube-controller-manager", Version: "1.36.3", Replicas: 2, Workerless: true})
		},
		"resource-manager": func() ([]client.Object, error) {
			return resourcemanager.Objects(resourcemanager.Values{Of: of, Namespace: namespace, Image: "gardener", Replicas: 2, Shoot: &resourcemanager.Shoot{
				GenericKubeconfig: "generic-token-kubeconfig",
			}, Config: resourcemanager.ForVirtualGarden(namespace, []string{"more", metav1.NamespaceSystem})})
		},
	} {
		rendered, err := render()
		if err != nil {
			t.Fatal(err)
		}
		golden.Objects(t, name+".yaml", rendered)
	}
	golden.Objects(t, "etcd.yaml", objects, druidv1alpha1.AddToScheme)
}

// The default is a shoot.
func TestShoot(t *testing.T) {
	if name, class := instance.Shoot.Name("etcd-main"), instance.Shoot.PriorityClass("gardener-system-500"); name != "etcd-main" || class != "gardener-system-500" {
		t.Errorf("name %q, priority class %q", name, class)
	}
}
