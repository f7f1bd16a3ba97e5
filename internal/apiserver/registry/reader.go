package registry

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/apiserver/registry/kind"
)

// fromCache is the resource version of reads that the watch cache serves in its present state.
const fromCache = "0"

// Reader reads objects of the garden API from the stores of this process. It sends no request and stores no copies.
//
// It reads from the watch cache, which may be some milliseconds behind. An object that the cache does not have is read from etcd, so
// one that was just created is found. With the option initializer.Fresh all is read from etcd.
//
// What it returns is shared with the cache: callers must not change it, only a copy.
type Reader struct {
	stores atomic.Pointer[map[reflect.Type]*kind.Resource]
}

var _ client.Reader = &Reader{}

// Use makes the reader read from the stores of groups. Before that, reads fail as the server is not ready.
func (r *Reader) Use(groups []*genericapiserver.APIGroupInfo) {
	stores := map[reflect.Type]*kind.Resource{}
	for _, group := range groups {
		for _, storages := range group.VersionedResourcesStorageMap {
			for _, storage := range storages {
				if res, ok := storage.(*kind.Resource); ok {
					stores[reflect.TypeOf(res.NewFunc())] = res
					stores[reflect.TypeOf(res.NewListFunc())] = res
				}
			}
		}
	}
	r.stores.Store(&stores)
}

// Get implements client.Reader.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	res, err := r.storeOf(obj)
	if err != nil {
		return err
	}
	// Stores would call an invalid name a bad request.
	if key.Name == "" || len(content.IsPathSegmentName(key.Name)) > 0 {
		return apierrors.NewNotFound(res.DefaultQualifiedResource, key.Name)
	}
	options := (&client.GetOptions{}).ApplyOptions(opts)
	version := fromCache
	if options.Raw != nil {
		version = options.Raw.ResourceVersion
	}
	ctx = requestFor(ctx, res, key.Namespace)
	found, err := res.Get(ctx, key.Name, &metav1.GetOptions{ResourceVersion: version})
	if apierrors.IsNotFound(err) && version == fromCache {
		found, err = res.Get(ctx, key.Name, &metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	fill(obj, found)
	return nil
}

// List implements client.Reader. Limits do not apply.
func (r *Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	res, err := r.storeOf(list)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	version := fromCache
	if options.Raw != nil {
		version = options.Raw.ResourceVersion
	}
	found, err := res.List(requestFor(ctx, res, options.Namespace), &internalversion.ListOptions{
		LabelSelector: options.LabelSelector, FieldSelector: options.FieldSelector, ResourceVersion: version,
	})
	if err != nil {
		return err
	}
	fill(list, found)
	return nil
}

func (r *Reader) storeOf(obj runtime.Object) (*kind.Resource, error) {
	stores := r.stores.Load()
	if stores == nil {
		return nil, apierrors.NewServiceUnavailable("the API server is still starting")
	}
	if res, ok := (*stores)[reflect.TypeOf(obj)]; ok {
		return res, nil
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("objects of type %T are not stored here", obj))
}

// requestFor returns the context of a read. Stores take the namespace, and the resource that errors name, from the request; the request
// being served may be for another resource.
func requestFor(ctx context.Context, res *kind.Resource, namespace string) context.Context {
	ctx = request.WithNamespace(ctx, namespace)
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: res.GroupVersionResource.Group, APIVersion: res.GroupVersionResource.Version, Resource: res.GroupVersionResource.Resource, Namespace: namespace,
	})
}

// fill makes an object the shallow copy of another object.
func fill(to, from runtime.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
}
