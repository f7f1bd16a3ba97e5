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
)

// fromCache is the resource version of reads that the watch cache answers with what it has.
const fromCache = "0"

// Reader reads objects of the garden API from the stores of this process. No request is sent and nothing is kept twice.
//
// It answers from the watch cache, which may be some milliseconds behind; an object that the cache does not have is looked for
// in etcd, so what was just created is found. Options with initializer.Fresh in them read what etcd has.
//
// What it returns is shared with the cache: callers must not change it, but a copy.
type Reader struct {
	stores atomic.Pointer[map[reflect.Type]*resource]
}

var _ client.Reader = &Reader{}

// Use makes the reader read from the stores of groups. Before that it says that the server is not ready.
func (r *Reader) Use(groups []*genericapiserver.APIGroupInfo) {
	stores := map[reflect.Type]*resource{}
	for _, group := range groups {
		for _, storages := range group.VersionedResourcesStorageMap {
			for _, storage := range storages {
				if res, ok := storage.(*resource); ok {
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
	// What cannot be the name of an object is none; stores would find the question wrong.
	if key.Name == "" || len(content.IsPathSegmentName(key.Name)) > 0 {
		return apierrors.NewNotFound(res.DefaultQualifiedResource, key.Name)
	}
	options := (&client.GetOptions{}).ApplyOptions(opts)
	version := fromCache
	if options.Raw != nil {
		version = options.Raw.ResourceVersion
	}
	ctx = res.requestFor(ctx, key.Namespace)
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
	found, err := res.List(res.requestFor(ctx, options.Namespace), &internalversion.ListOptions{
		LabelSelector: options.LabelSelector, FieldSelector: options.FieldSelector, ResourceVersion: version,
	})
	if err != nil {
		return err
	}
	fill(list, found)
	return nil
}

func (r *Reader) storeOf(obj runtime.Object) (*resource, error) {
	stores := r.stores.Load()
	if stores == nil {
		return nil, apierrors.NewServiceUnavailable("the API server is still starting")
	}
	if res, ok := (*stores)[reflect.TypeOf(obj)]; ok {
		return res, nil
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("objects of type %T are not stored here", obj))
}

// requestFor returns the context of a read. Stores look at the request for the namespace, and for what to name in errors; the
// request being served may be about another resource.
func (r *resource) requestFor(ctx context.Context, namespace string) context.Context {
	ctx = request.WithNamespace(ctx, namespace)
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: r.kind.gvk.Group, APIVersion: r.kind.gvk.Version, Resource: r.kind.plural, Namespace: namespace,
	})
}

// fill makes an object the shallow copy of another one.
func fill(to, from runtime.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
}
