// Package gardenletauthorizer allows in gardener-apiserver itself what gardener-admission-controller would allow: requests of gardenlets and
// extensions for what belongs to their seed or self-hosted shoot. The rules are the same, and the objects come from the server's own
// watches. That saves the question to the kube-apiserver, and its cached answers.
//
// It never refuses: other requests, and all before it knows all objects, are decided as without it.
package gardenletauthorizer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/authorizer"
	"gardener.cloud/gardener/internal/authorizer/feed"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// Authorizer allows requests of gardenlets and extensions, and asks another authorizer about all others.
type Authorizer struct {
	graph  *graph.Graph
	feed   atomic.Pointer[feed.Feed]
	seeds  *authorizer.Seeds
	shoots *authorizer.Shoots
	next   kauthorizer.Authorizer
}

// New returns an authorizer that allows nothing itself until Run has filled its graph.
func New(next kauthorizer.Authorizer) *Authorizer {
	a := &Authorizer{graph: graph.New(clock.RealClock{}), next: next}
	values := authorizer.Values{Graph: a.graph, Complete: a.complete, Live: unknown{}}
	a.seeds = authorizer.NewSeeds(values)
	a.shoots = authorizer.NewShoots(values, a.seeds)
	return a
}

func (a *Authorizer) complete() bool {
	f := a.feed.Load()
	return f != nil && f.HasSynced()
}

// Authorize implements authorizer.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, attributes kauthorizer.Attributes) (kauthorizer.Decision, string, error) {
	if a.complete() {
		for _, own := range []kauthorizer.Authorizer{a.seeds, a.shoots} {
			if decision, reason, err := own.Authorize(ctx, attributes); decision == kauthorizer.DecisionAllow && err == nil {
				return decision, reason, nil
			}
		}
	}
	return a.next.Authorize(ctx, attributes)
}

// unknown cannot tell what exists: these questions are left to the next authorizer.
type unknown struct{}

var errUnknown = errors.New("not known here")

func (unknown) Exists(context.Context, string, string, types.NamespacedName) (bool, error) {
	return false, errUnknown
}

func (unknown) ShootOfBootstrapToken(context.Context, string) (types.NamespacedName, error) {
	return types.NamespacedName{}, errUnknown
}

// Run watches the objects of the server itself until the context ends. The configuration is that of its loopback client.
func (a *Authorizer) Run(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	var errs []error
	for _, add := range []func(*runtime.Scheme) error{
		gardencorev1.AddToScheme, corev1beta1.AddToScheme, operationsv1alpha1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
	} {
		errs = append(errs, add(scheme), apiutil.AddToProtobufScheme(add))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("register kinds: %w", err)
	}
	served := func(obj client.Object) bool {
		_, _, err := scheme.ObjectKinds(obj)
		return err == nil
	}
	options := feed.ByObject()
	for obj := range options {
		if !served(obj) {
			delete(options, obj)
		}
	}
	informers, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: options, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return fmt.Errorf("set up informers: %w", err)
	}
	// Those of the kube-apiserver lead to objects only that it serves too.
	kinds := slices.DeleteFunc(graph.Watched(), func(obj client.Object) bool { return !served(obj) })
	f, err := feed.Start(ctx, informers, a.graph, kinds, nil)
	if err != nil {
		return err
	}
	a.feed.Store(f)
	return informers.Start(ctx)
}
