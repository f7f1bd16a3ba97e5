package foreign

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	address = "127.0.0.1"
	domain  = ".acme.extensions.gardener.cloud"
)

// serve adds the webhooks, and registers them by a URL, as the process is not in the cluster.
func serve(ctx context.Context, mgr manager.Manager, v Values) error {
	certificate, key, err := certutil.GenerateSelfSignedCertKey(address, nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	server := crwebhook.NewServer(crwebhook.Options{Host: address, Port: v.Port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	}}})
	for path, mutate := range map[string]func(*unstructured.Unstructured) error{
		"controlplane": mutateControlPlane, "cloudprovider": mutateCredentials, "seedprovider": mutateEtcd,
	} {
		server.Register("/"+path, &admission.Webhook{Handler: handler(mutate)})
	}
	if err := mgr.Add(server); err != nil {
		return err
	}
	namespace := &corev1.Namespace{}
	if err := mgr.GetClient().Get(ctx, client.ObjectKey{Name: v.Namespace}, namespace); err != nil {
		return fmt.Errorf("read Namespace: %w", err)
	}
	return apply(ctx, mgr.GetClient(), registration(namespace, net.JoinHostPort(address, strconv.Itoa(v.Port)), certificate))
}

// registration returns the registration of the webhooks. It goes with the namespace.
func registration(namespace *corev1.Namespace, host string, ca []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	rule := func(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources},
		}
	}
	webhook := func(name, namespaces string, objects map[string]string, rules ...admissionregistrationv1.RuleWithOperations) admissionregistrationv1.MutatingWebhook {
		return admissionregistrationv1.MutatingWebhook{
			Name: name + domain, Rules: rules, ObjectSelector: &metav1.LabelSelector{MatchLabels: objects},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: ca, URL: new("https://" + host + "/" + name)},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: namespaces, Operator: metav1.LabelSelectorOpIn, Values: []string{Type}},
			}},
			FailurePolicy: new(admissionregistrationv1.Fail), MatchPolicy: new(admissionregistrationv1.Exact), TimeoutSeconds: new(int32(10)),
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}
	}
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: Configuration, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID},
		}},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			webhook("controlplane", "shoot.gardener.cloud/provider", map[string]string{"provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true"},
				rule("apps", "v1", "deployments"), rule("autoscaling.k8s.io", "v1", "verticalpodautoscalers"),
				rule("extensions.gardener.cloud", "v1alpha1", "operatingsystemconfigs")),
			webhook("cloudprovider", "shoot.gardener.cloud/provider", map[string]string{"gardener.cloud/purpose": "cloudprovider"}, rule("", "v1", "secrets")),
			webhook("seedprovider", "seed.gardener.cloud/provider", nil, rule("druid.gardener.cloud", "v1alpha1", "etcds")),
		},
	}
}

// handler returns the handler of a function that changes objects. Those in deletion stay as they are.
func handler(mutate func(*unstructured.Unstructured) error) admission.HandlerFunc {
	return func(_ context.Context, request admission.Request) admission.Response {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(request.Object.Raw, &object.Object); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if object.GetDeletionTimestamp() != nil {
			return admission.Allowed("it is being deleted")
		}
		if err := mutate(object); err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName(), err))
		}
		changed, err := json.Marshal(object)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, changed)
	}
}

func mutateControlPlane(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "Deployment":
		return edit(object, mutateDeployment)
	case "VerticalPodAutoscaler":
		return mutateAutoscaler(object)
	case "OperatingSystemConfig":
		return edit(object, (*operatingSystemConfig).mutate)
	}
	return fmt.Errorf("a webhook for %s was not registered", object.GetKind())
}

// mutateCredentials adds a file with the credentials to those of a shoot, in the format of the cloud provider.
func mutateCredentials(object *unstructured.Unstructured) error {
	return edit(object, func(s *corev1.Secret) error {
		token := s.Data["token"]
		if len(token) == 0 {
			return errors.New("there is no token")
		}
		s.Data["credentialsFile"] = []byte("token = " + string(token) + "\n")
		return nil
	})
}

// mutateEtcd sets the class of the volumes of etcd.
func mutateEtcd(object *unstructured.Unstructured) error {
	if object.GetName() != "etcd-main" {
		return nil
	}
	if err := unstructured.SetNestedField(object.Object, "acme-fast", "spec", "storageClass"); err != nil {
		return err
	}
	return unstructured.SetNestedField(object.Object, "33Gi", "spec", "storageCapacity")
}

// edit changes an object as a value of its type.
func edit[T any](object *unstructured.Unstructured, change func(*T) error) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	typed := new(T)
	if err := json.Unmarshal(raw, typed); err != nil {
		return err
	}
	if err := change(typed); err != nil {
		return err
	}
	if raw, err = json.Marshal(typed); err != nil {
		return err
	}
	object.Object = nil
	return json.Unmarshal(raw, &object.Object)
}
