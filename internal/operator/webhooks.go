package operator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/internal/operator/virtualcluster"
	"gardener.cloud/gardener/internal/operator/webhook/auditpolicy"
	"gardener.cloud/gardener/internal/operator/webhook/configuration"
	"gardener.cloud/gardener/internal/operator/webhook/extension"
	"gardener.cloud/gardener/internal/operator/webhook/garden"
	"gardener.cloud/gardener/internal/operator/webhook/namespacedeletion"
	"gardener.cloud/gardener/internal/process"
)

// addWebhooks serves the webhooks, also in replicas that do not lead.
func (o *Operator) addWebhooks() error {
	decoder, connection := admission.NewDecoder(o.GetScheme()), process.SetConnection(o.Config.VirtualClientConnection)
	for path, handler := range map[string]admission.Handler{
		configuration.PathGardenDefaulting:    &garden.Defaulter{Decoder: decoder},
		configuration.PathExtensionDefaulting: &extension.Defaulter{Decoder: decoder},
		configuration.PathGardenValidation: &garden.Validator{
			Reader: o.RuntimeAPI, Decoder: decoder, Images: o.Images,
			Remaining: func(ctx context.Context) ([]string, error) {
				return virtualcluster.Remaining(ctx, o.RuntimeAPI, connection)
			},
		},
		configuration.PathExtensionValidation: &extension.Validator{Reader: o.RuntimeAPI, Decoder: decoder},
		configuration.PathNamespaceDeletion:   &namespacedeletion.Handler{Reader: o.RuntimeAPI},
		configuration.PathAuditPolicies:       &auditpolicy.Handler{Reader: o.RuntimeAPI, Decoder: decoder},
	} {
		o.GetWebhookServer().Register(path, &admission.Webhook{Handler: handler})
	}
	return nil
}
