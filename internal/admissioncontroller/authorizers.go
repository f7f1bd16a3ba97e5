package admissioncontroller

import (
	"context"
	"fmt"
	"net/http"

	kauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"gardener.cloud/gardener/internal/admissioncontroller/webhook/authorization"
	"gardener.cloud/gardener/internal/authorizer"
	"gardener.cloud/gardener/internal/authorizer/graph"
	component "gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/process"
)

// addAuthorizers serves the authorizers and, if enabled, pages with what they decide by.
func addAuthorizers(p *process.Process, c *config, values authorizer.Values) error {
	protect := func(h http.Handler) http.Handler { return h }
	if file := c.Server.Webhooks.TLS.ClientCAFile; file != nil {
		cas, err := dynamiccertificates.NewDynamicCAContentFromFile("client CA of authorization webhooks", *file)
		if err != nil {
			return err
		}
		if err := p.Add(manager.RunnableFunc(func(ctx context.Context) error {
			cas.Run(ctx, 1)
			return nil
		})); err != nil {
			return err
		}
		protect = func(h http.Handler) http.Handler { return authorization.RequireCertificate(h, cas.VerifyOptions) }
	}
	seeds := authorizer.NewSeeds(values)
	server := p.GetWebhookServer()
	for path, a := range map[string]kauthorizer.Authorizer{component.PathSeedAuthorizer: seeds, component.PathShootAuthorizer: authorizer.NewShoots(values, seeds)} {
		server.Register(path, protect(&authorization.Handler{Authorizer: a, Log: p.GetLogger().WithValues("path", path)}))
	}
	if enabled := c.Server.EnableDebugHandlers; enabled != nil && *enabled {
		return addDebugPages(p, values.Graph)
	}
	return nil
}

// addDebugPages serves pages with the graph. A user needs the permission to get their path in the garden, as for its other paths.
func addDebugPages(p *process.Process, g *graph.Graph) error {
	filter, err := filters.WithAuthenticationAndAuthorization(p.GetConfig(), p.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("set up the authentication of users: %w", err)
	}
	for path, scope := range map[string]graph.Scope{pathSeedGraph: graph.Seeds, pathShootGraph: graph.Shoots} {
		handler, err := filter(p.GetLogger().WithValues("path", path), &debugPage{graph: g, path: path, scope: scope})
		if err != nil {
			return err
		}
		p.GetWebhookServer().Register(path, handler)
	}
	return nil
}
