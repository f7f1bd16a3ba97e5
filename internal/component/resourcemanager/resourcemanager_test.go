package resourcemanager

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

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

// While its pods do not answer webhooks, their Deployment can be changed so that they do, and pods created.
func TestNeedsNoWebhookOfItsOwn(t *testing.T) {
	config := ForSeed()
	config.Webhooks.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds = new(int64(60))
	config.Webhooks.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds = new(int64(70))
	objects, err := Objects(Values{Namespace: "garden", Replicas: 2, ServerSecret: "server-1234", Config: config, Zones: true})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]map[string]string{} // of what the webhooks could be called for
	var webhooks []admissionregistrationv1.MutatingWebhook
	for _, object := range objects {
		switch o := object.(type) {
		case *appsv1.Deployment:
			labels["deployments"], labels["pods"] = o.Labels, o.Spec.Template.Labels
			pod := o.Spec.Template.Spec
			if keys := len(pod.TopologySpreadConstraints); keys != 2 || len(pod.Tolerations) != 2 {
				t.Errorf("pods have %d constraints and tolerations %v, want what the webhook sets", keys, pod.Tolerations)
			}
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			webhooks = append(webhooks, o.Webhooks...)
		}
	}
	for _, w := range webhooks {
		selector, err := metav1.LabelSelectorAsSelector(w.ObjectSelector)
		if err != nil {
			t.Fatal(err)
		}
		for resource, of := range labels {
			called := slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return slices.Contains(r.Resources, resource) })
			if called && *w.FailurePolicy == admissionregistrationv1.Fail && selector.Matches(k8slabels.Set(of)) {
				t.Errorf("the webhook %s is called for its own %s", w.Name, resource)
			}
		}
	}
	if len(webhooks) == 0 || len(labels["pods"]) == 0 {
		t.Error("there are no webhooks, or no Deployment")
	}
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
