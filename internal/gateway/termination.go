package gateway

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	deployed "gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/gateway/terminator"
)

// terminatorHost and terminatorPort are where the process that ends connections listens, in the pod of HAProxy. Nothing else reaches it.
const (
	terminatorHost = "127.0.0.1"
	terminatorPort = 8444
)

// terminatorAddress is the same address.
var terminatorAddress = netip.AddrPortFrom(netip.MustParseAddr(terminatorHost), terminatorPort)

// credentials reads the Secrets with which the gateway ends connections. Secrets that have not changed are not parsed again, so that connections
// to a kube-apiserver stay.
type credentials struct {
	client    client.Client
	namespace string
	parsed    map[types.UID]parsedCredentials
}

// parsedCredentials are those of a version of a Secret, or nil if they are not valid.
type parsedCredentials struct {
	resourceVersion string
	*terminator.Credentials
}

// read returns the credentials by their routes. The connections of routes with credentials that are not valid are passed through.
func (c *credentials) read(ctx context.Context) (map[types.NamespacedName]*terminator.Credentials, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // no route has any
	}
	secrets := &corev1.SecretList{}
	if err := c.client.List(ctx, secrets, client.InNamespace(c.namespace), client.HasLabels{deployed.LabelRouteNamespace}); err != nil {
		return nil, fmt.Errorf("list Secrets of routes: %w", err)
	}
	read, parsed := map[types.NamespacedName]*terminator.Credentials{}, map[types.UID]parsedCredentials{}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		route, ok := deployed.RouteOf(secret)
		if !ok {
			continue
		}
		p, known := c.parsed[secret.UID]
		if !known || p.resourceVersion != secret.ResourceVersion {
			p = parsedCredentials{resourceVersion: secret.ResourceVersion}
			var err error
			if p.Credentials, err = terminator.Parse(secret.Data); err != nil {
				logf.FromContext(ctx).Error(err, "Passing connections through, as credentials are not valid", "secret", client.ObjectKeyFromObject(secret).String())
			}
		}
		parsed[secret.UID] = p
		if p.Credentials != nil {
			read[route] = p.Credentials
		}
	}
	c.parsed = parsed
	return read, nil
}

// watch watches the Secrets with credentials.
func (c *credentials) watch(b *builder.Builder, all handler.EventHandler) *builder.Builder {
	if c == nil {
		return b
	}
	return b.Watches(&corev1.Secret{}, all, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
}

// cacheOptions limits the cache of Secrets to those of routes: the process may not read others.
func cacheOptions(o *options, manager *manager.Options) {
	hasRoute, _ := labels.NewRequirement(deployed.LabelRouteNamespace, selection.Exists, nil) // its arguments are constants
	manager.Cache.ByObject = map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{o.key().Namespace: {LabelSelector: labels.NewSelector().Add(*hasRoute)}}},
	}
}
