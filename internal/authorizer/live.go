package authorizer

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

// Garden reads the garden itself, without a cache.
type Garden struct {
	// API reads from the API server.
	API client.Reader
	// Mapper has the kinds of resources.
	Mapper meta.RESTMapper
}

// Exists implements Live.
func (g Garden) Exists(ctx context.Context, group, resource string, name types.NamespacedName) (bool, error) {
	kind, err := g.Mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if err != nil {
		return false, err
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(kind)
	err = g.API.Get(ctx, name, obj)
	return err == nil, client.IgnoreNotFound(err)
}

// ShootOfBootstrapToken implements Live.
func (g Garden) ShootOfBootstrapToken(ctx context.Context, secret string) (types.NamespacedName, error) {
	token, err := bootstraptoken.Read(ctx, g.API, strings.TrimPrefix(secret, graph.BootstrapTokenPrefix))
	return token.Shoot, client.IgnoreNotFound(err)
}
