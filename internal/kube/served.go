package kube

import (
	"context"
	"errors"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// discovery is for the moment in which a definition is established, but not among the kinds that the API server lists.
var discovery = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 8}

var errNotServed = errors.New("the CustomResourceDefinition is not established")

// WhenServed returns the source of events of a custom resource that may be defined only later: it starts when the CustomResourceDefinition of a
// name is established. A controller with a plain source would fail to start without it. Until then, reading the kind from a cache fails with
// an error for which meta.IsNoMatchError is true.
func WhenServed(mgr manager.Manager, definition string, src source.Source) (source.Source, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: scheme, HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, err
	}
	return Background(mgr, func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		var kind schema.GroupKind
		err := Await(ctx, api, &apiextensionsv1.CustomResourceDefinitionList{}, func(found []*apiextensionsv1.CustomResourceDefinition) error {
			if len(found) == 0 || Healthy(found[0]) != nil {
				return errNotServed
			}
			kind = schema.GroupKind{Group: found[0].Spec.Group, Kind: found[0].Spec.Names.Kind}
			return nil
		}, nil, client.MatchingFields{"metadata.name": definition})
		if err == nil {
			// After the last attempt the source goes on by itself, but slowly.
			_ = retry.OnError(discovery, func(err error) bool { return meta.IsNoMatchError(err) && ctx.Err() == nil }, func() error {
				_, err := mgr.GetRESTMapper().RESTMapping(kind)
				return err
			})
			err = src.Start(ctx, queue)
		}
		if err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "Failed watching custom resources", "customResourceDefinition", definition)
		}
	}), nil
}

// Background returns a source of events that runs until its context ends. The controller does not wait for it when it starts; the manager does when
// it stops.
func Background(mgr manager.Manager, run func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request])) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		return mgr.Add(manager.RunnableFunc(func(context.Context) error {
			run(ctx, queue)
			return nil
		}))
	})
}

// InBackground returns a source that a controller does not wait for before it starts. It is for kinds of an aggregated API, which may be
// unavailable for longer than a controller waits.
func InBackground(src source.Source) source.Source {
	return source.Func(src.Start)
}
