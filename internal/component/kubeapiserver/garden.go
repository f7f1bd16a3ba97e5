package kubeapiserver

import (
	"fmt"
	"strconv"
	"strings"

	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/validation/kubeconfig"
)

// garden configures what only a virtual garden has, besides its authorizers.
func (r *renderer) garden() error {
	g := r.Garden
	if g == nil {
		return nil
	}
	// Services that are aggregated have endpoints in the runtime cluster, where the address of a Service of the virtual cluster leads nowhere.
	r.set("enable-aggregator-routing", "true")
	overrides := r.flags["etcd-servers-overrides"]
	for _, resource := range g.EventResources {
		overrides = append(overrides, resource.Group+"/"+resource.Resource+"#"+etcd.URL(r.Of, etcd.Events))
	}
	r.set("etcd-servers-overrides", strings.Join(overrides, ","))
	sni := make([]string, 0, len(g.SNI))
	for i, s := range g.SNI {
		cert, key := r.certificate(fmt.Sprintf("tls-sni-%d", i), s.Secret)
		value := cert + "," + key
		if len(s.Patterns) > 0 {
			value += ":" + strings.Join(s.Patterns, ",")
		}
		sni = append(sni, value)
	}
	if len(sni) > 0 {
		r.set("tls-sni-cert-key", sni...)
	}
	if audit := g.AuditWebhook; audit != nil {
		file, err := r.webhookKubeconfig("audit-webhook", audit.Kubeconfig)
		if err != nil {
			return err
		}
		r.set("audit-webhook-config-file", file)
		if audit.BatchMaxSize != nil {
			r.set("audit-webhook-batch-max-size", strconv.Itoa(int(*audit.BatchMaxSize)))
		}
		if audit.Version != nil {
			r.set("audit-webhook-version", *audit.Version)
		}
	}
	if authentication := g.AuthenticationWebhook; authentication != nil {
		file, err := r.webhookKubeconfig("authentication-webhook", authentication.Kubeconfig)
		if err != nil {
			return err
		}
		r.set("authentication-token-webhook-config-file", file)
		if authentication.CacheTTL != nil {
			r.set("authentication-token-webhook-cache-ttl", authentication.CacheTTL.Duration.String())
		}
		if authentication.Version != nil {
			r.set("authentication-token-webhook-version", *authentication.Version)
		}
	}
	return nil
}

// webhookKubeconfig mounts the kubeconfig for a webhook, and returns its path.
func (r *renderer) webhookKubeconfig(name string, given []byte) (string, error) {
	data, errs := kubeconfig.Client(given, nil)
	if err := refused(name+": kubeconfig", errs); err != nil {
		return "", err
	}
	const key = "kubeconfig.yaml"
	return r.secretConfig(name+"-kubeconfig", map[string][]byte{key: data}, nil) + key, nil
}
