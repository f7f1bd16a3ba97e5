package resourcemanager

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, ServerSecret: "server-1234", CABundle: []byte("CA"), Config: ForSeed(),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}

func TestObjectsWithoutCertificate(t *testing.T) {
	objects, err := Objects(Values{Namespace: "garden", Config: ForSeed()})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		switch object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration:
			t.Error("webhooks without a server are deployed")
		}
	}
}

// Pods of control planes are sent to the gateway, and those of nothing else.
func TestLoadBalancingWebhook(t *testing.T) {
	c := resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
	c.Webhooks.PodKubeAPIServerLoadBalancing.Enabled = true
	golden.Objects(t, "load-balancing.yaml", Webhooks(&c, Scope{Namespace: "garden", CABundle: []byte("CA")}))
}

func TestWebhooksOfAShoot(t *testing.T) {
	config := ForSeed()
	config.Webhooks.CRDDeletionProtection.Enabled, config.Webhooks.ExtensionValidation.Enabled = false, false
	config.Webhooks.KubernetesServiceHost.Enabled = true
	config.Webhooks.SystemComponentsConfig.Enabled = true
	config.Webhooks.PodSchedulerName.Enabled = true
	config.Webhooks.EndpointSliceHints.Enabled = true
	config.Webhooks.VPAInPlaceUpdates.Enabled = true
	golden.Objects(t, "shoot.yaml", Webhooks(&config, Scope{URL: "https://gardener-resource-manager.shoot--a--b", Shoot: true, CABundle: []byte("CA")}))
}
