package stage

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/pkg/errorcode"
)

// The errors are those of a kube-apiserver. TestForeignExtension in test/integration/gardenlet has them from a real one.
func TestErrorsOfWebhooksSayWhatToDo(t *testing.T) {
	registered := func(configuration, webhook string, change func(*admissionregistrationv1.MutatingWebhookConfiguration)) *admissionregistrationv1.MutatingWebhookConfiguration {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: configuration}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: webhook}},
		}
		change(c)
		return c
	}
	service := func(namespace string) func(*admissionregistrationv1.MutatingWebhookConfiguration) {
		return func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: namespace}
		}
	}
	owner := func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "Namespace", Name: "extension-provider-b"}}
	}
	c := fake.NewClientBuilder().WithObjects(
		registered("gardener-extension-provider-a", "controlplane.a.extensions.gardener.cloud", service("extension-provider-a-x1y2z")),
		registered("gardener-extension-provider-b", "controlplane.b.extensions.gardener.cloud", owner),
		registered("gardener-extension-provider-c", "controlplane.c.extensions.gardener.cloud", func(*admissionregistrationv1.MutatingWebhookConfiguration) {}),
		registered("policies", "policies.example.com", service("extension-policies")),
		registered("gardener-resource-manager", "high-availability-config.resources.gardener.cloud", service("garden")),
	).Build()
	call := func(webhook string) error {
		return fmt.Errorf(`failed calling webhook %q: failed to call webhook: Post "https://10.2.0.7:443/x?timeout=10s": dial tcp 10.2.0.7:443: connect: connection refused`, webhook)
	}
	denied := func(webhook string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: fmt.Sprintf("admission webhook %q denied the request: panic: nil map [recovered]", webhook)}}
	}
	for name, tc := range map[string]struct {
		err error
		// want is what the error ends with. Empty means that it stays as it is.
		want string
	}{
		"its Service names the ControllerInstallation": {
			apierrors.NewInternalError(call("controlplane.a.extensions.gardener.cloud")),
			`: webhook "controlplane.a.extensions.gardener.cloud" of the extension with MutatingWebhookConfiguration "gardener-extension-provider-a" does not respond as it should: ` +
				`see its pods and their logs in namespace "extension-provider-a-x1y2z" of the seed, and ControllerInstallation "provider-a-x1y2z"`,
		},
		"so does the namespace that it is deleted with": {
			apierrors.NewInternalError(call("controlplane.b.extensions.gardener.cloud")),
			`see its pods and their logs in namespace "extension-provider-b" of the seed, and ControllerInstallation "provider-b"`,
		},
		"it has neither": {
			apierrors.NewInternalError(call("controlplane.c.extensions.gardener.cloud")),
			`MutatingWebhookConfiguration "gardener-extension-provider-c" does not respond as it should: see its pods and their logs in the seed`,
		},
		"another name, in a namespace of an extension": {
			apierrors.NewInternalError(call("policies.example.com")), `see its pods and their logs in namespace "extension-policies" of the seed, and ControllerInstallation "policies"`,
		},
		"it has failed": {
			denied("controlplane.b.extensions.gardener.cloud"),
			`MutatingWebhookConfiguration "gardener-extension-provider-b" refuses the request: see its pods and their logs in namespace "extension-provider-b" of the seed, ` +
				`and ControllerInstallation "provider-b"`,
		},
		"one of Gardener":      {err: apierrors.NewInternalError(call("high-availability-config.resources.gardener.cloud"))},
		"it is not registered": {err: apierrors.NewInternalError(call("controlplane.x.extensions.gardener.cloud"))},
		"no webhook":           {err: apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "x", errors.New("quota"))},
		"none":                 {},
	} {
		t.Run(name, func(t *testing.T) {
			var wrapped error
			if tc.err != nil {
				wrapped = fmt.Errorf("apply Deployment: %w", tc.err)
			}
			got := (&Run{SeedAPI: c}).Advise(t.Context(), wrapped)
			if !errors.Is(got, wrapped) {
				t.Errorf("error %v is lost: %v", wrapped, got)
			}
			if tc.want == "" && got != wrapped { //nolint:errorlint // it is the same
				t.Errorf("error is %v", got)
			}
			if tc.want != "" && !strings.HasSuffix(got.Error(), tc.want) {
				t.Errorf("error is %v\nwant: %s", got, tc.want)
			}
			if codes := errorcode.Of(got); len(codes) > 0 {
				t.Errorf("the owner of the shoot is told to act: %v", codes)
			}
		})
	}
}
