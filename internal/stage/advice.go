package stage

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/pkg/extension/webhook"
)

// adviceTimeout is the end of the search for the registration of a webhook.
const adviceTimeout = 5 * time.Second

// What a kube-apiserver says of a mutating webhook that it could not call, and of one that has refused the object or failed itself.
var (
	notCalled = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	refused   = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
)

// Advise adds to the error of a request which extension has to be repaired, if the request failed because of a webhook of an extension. Control planes are
// not deployed without what extensions add, so that such an error stays until it responds.
func (r *Run) Advise(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	problem, found := "does not respond as it should", notCalled.FindStringSubmatch(err.Error())
	if found == nil {
		problem, found = "refuses the request", refused.FindStringSubmatch(err.Error())
	}
	if found == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adviceTimeout)
	defer cancel()
	configuration := r.registrationOf(ctx, found[1])
	if configuration == nil {
		return err
	}
	namespace := namespaceOf(configuration)
	advice := fmt.Sprintf("see its pods and their logs in namespace %q of the seed", namespace)
	if namespace == "" {
		advice = "see its pods and their logs in the seed"
	}
	if installation, ok := strings.CutPrefix(namespace, extensionobject.NamespacePrefix); ok {
		advice = fmt.Sprintf("%s, and ControllerInstallation %q", advice, installation)
	}
	return fmt.Errorf("%w: webhook %q of the extension with MutatingWebhookConfiguration %q %s: %s", err, found[1], configuration.Name, problem, advice)
}

// registrationOf returns the registration that an extension has written for a webhook. It returns nil if there is none, and if it cannot be read, as the
// error that it is for says more.
func (r *Run) registrationOf(ctx context.Context, webhookName string) *admissionregistrationv1.MutatingWebhookConfiguration {
	configurations := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	if err := r.SeedAPI.List(ctx, configurations); err != nil {
		return nil
	}
	for i := range configurations.Items {
		c := &configurations.Items[i]
		if !strings.HasPrefix(c.Name, webhook.ConfigurationPrefix) && !strings.HasPrefix(namespaceOf(c), extensionobject.NamespacePrefix) {
			continue
		}
		for _, registered := range c.Webhooks {
			if registered.Name == webhookName {
				return c
			}
		}
	}
	return nil
}

// namespaceOf returns the namespace of the process that serves the webhooks: that of its Service, or the one that the registration is deleted with.
func namespaceOf(c *admissionregistrationv1.MutatingWebhookConfiguration) string {
	for _, registered := range c.Webhooks {
		if service := registered.ClientConfig.Service; service != nil {
			return service.Namespace
		}
	}
	for _, owner := range c.OwnerReferences {
		if owner.Kind == "Namespace" {
			return owner.Name
		}
	}
	return ""
}
