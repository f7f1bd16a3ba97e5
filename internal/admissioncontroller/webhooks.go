package admissioncontroller

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/internal/admissioncontroller/webhook/configurationfile"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/internaldomain"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/kubeconfigreference"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/kubeconfigsecret"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/namespacedeletion"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/providerlabels"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/rejections"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/resourcesize"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/seedrestriction"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/shootrestriction"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/updaterestriction"
	component "gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/shoot/apiserverfiles"
)

// addWebhooks serves the admission webhooks. All are served always; the webhook configurations say which are called.
func addWebhooks(ctx context.Context, p *process.Process, c *config) error {
	if err := providerlabels.AddIndexes(ctx, p.GetFieldIndexer()); err != nil {
		return err
	}
	rejected, err := rejections.New(p.Metrics)
	if err != nil {
		return err
	}
	cache, reader, decoder := p.GetCache(), p.GetAPIReader(), admission.NewDecoder(p.GetScheme())
	file := func(of apiserverfiles.File) admission.Handler {
		return &configurationfile.Handler{File: of, Cache: cache, Reader: reader, Decoder: decoder}
	}
	for path, handler := range map[string]admission.Handler{
		component.PathAuditPolicies:               file(apiserverfiles.AuditPolicy),
		component.PathAuthenticationConfiguration: file(apiserverfiles.Authentication),
		component.PathAuthorizationConfiguration:  file(apiserverfiles.Authorization),
		component.PathInternalDomain:              &internaldomain.Handler{Reader: reader, Decoder: decoder},
		component.PathKubeconfigReference:         &kubeconfigreference.Handler{Cache: cache, Decoder: decoder},
		component.PathKubeconfigSecrets:           &kubeconfigsecret.Handler{Decoder: decoder, Rejected: rejected},
		component.PathNamespaceDeletion:           &namespacedeletion.Handler{Reader: reader, Decoder: decoder},
		component.PathProviderLabels:              &providerlabels.Handler{Cache: cache},
		component.PathResourceSize:                &resourcesize.Handler{Config: c.Server.ResourceAdmissionConfiguration, Reader: reader, Rejected: rejected},
		component.PathSeedRestriction:             seedrestriction.New(reader, cache, decoder, clock.RealClock{}),
		component.PathShootRestriction:            shootrestriction.New(reader, cache, decoder, clock.RealClock{}),
		component.PathUpdateRestriction:           updaterestriction.Handler{},
	} {
		p.GetWebhookServer().Register(path, &admission.Webhook{Handler: handler})
	}
	return nil
}
