package extension

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/extension/webhook"
	"gardener.cloud/gardener/pkg/extension/webhook/gardenadmission"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// TestGardenAdmission checks and defaults CloudProfiles of a type by webhooks, which gardener-apiserver calls.
func TestGardenAdmission(t *testing.T) {
	logf.SetLogger(logr.Discard())
	e := env.Start(t, env.Lenient("ExtensionLabels"))
	const of = "extension-admission"
	if err := e.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: of}}); err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(e.Config, manager.Options{Scheme: e.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	const address = "127.0.0.1"
	port := ports.Free(t, 1)[0]
	caBundle := field.NewPath("spec", "caBundle")
	if err := webhook.Add(mgr, webhook.Options{
		Name: "admission-test", Namespace: of, BindAddress: address, Port: port, URL: fmt.Sprintf("%s:%d", address, port),
		Webhooks: []webhook.Webhook{
			gardenadmission.Validator("validate-cloudprofiles", gardenadmission.CloudProfiles("local"), func(_ context.Context, profile, _ *corev1beta1.CloudProfile) error {
				if profile.Annotations["invalid"] != "" {
					return field.Forbidden(caBundle, "not for this provider")
				}
				return nil
			}),
			gardenadmission.Mutator("default-cloudprofiles", gardenadmission.CloudProfiles("local"), func(_ context.Context, profile, old *corev1beta1.CloudProfile) error {
				metav1.SetMetaDataAnnotation(&profile.ObjectMeta, "defaulted", fmt.Sprint(old == nil))
				return nil
			}),
		},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	invalid := func(typ string) *corev1beta1.CloudProfile {
		return builder.CloudProfile(typ, func(p *corev1beta1.CloudProfile) {
			p.Spec.Type, p.Annotations = typ, map[string]string{"invalid": "true"}
		})
	}
	env.AwaitRequest(t, func(ctx context.Context) error {
		err := e.Client.Create(ctx, invalid("local"), client.DryRunAll)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.caBundle: Forbidden: not for this provider") {
			return fmt.Errorf("create an invalid profile: %v, want that the webhook refuses it", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
	if err := e.Client.Create(t.Context(), invalid("other")); err != nil {
		t.Errorf("a profile of another provider is checked: %v", err)
	}
	valid := builder.CloudProfile("local")
	if err := e.Client.Create(t.Context(), valid); err != nil {
		t.Fatal(err)
	}
	if valid.Annotations["defaulted"] != "true" {
		t.Errorf("annotations after creation are %v", valid.Annotations)
	}
	env.Edit(t, e.Client, valid, func(p *corev1beta1.CloudProfile) { p.Labels["changed"] = "true" })
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(valid), valid); err != nil || valid.Annotations["defaulted"] != "false" {
		t.Errorf("annotations after an update are %v (%v)", valid.Annotations, err)
	}

	// All webhooks are disabled.
	if err := webhook.Add(mgr, webhook.Options{Name: "admission-test", Namespace: of, URL: address + ":443"}); err != nil {
		t.Fatal(err)
	}
	watching, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	validating := env.Named[*admissionregistrationv1.ValidatingWebhookConfiguration]("", "gardener-extension-admission-test")
	env.Await(t, watching, validating, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) error {
		if len(c.Webhooks) > 0 {
			return fmt.Errorf("it has webhook %q", c.Webhooks[0].Name)
		}
		return nil
	})
}
