// Package guard keeps objects of the API while others use them.
//
// A guarded object has the finalizer "gardener" from the start. When it is being deleted, the finalizer stays until nobody uses the
// object any more. Who uses it is looked up in the indexes of the cache.
package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// namedUsers is how many users of each kind the event about a blocked deletion names.
const namedUsers = 3

// Use is one way in which guarded objects are used by objects of another kind.
type Use struct {
	// User is an empty object of the kind that uses, and Users an empty list.
	User  client.Object
	Users client.ObjectList
	// Of returns the guarded objects that a user uses.
	Of func(user client.Object) []reconcile.Request
	// By returns the list options, with an index, that select the users of a guarded object.
	By func(guarded client.Object) []client.ListOption
}

// Guard keeps objects of one kind.
type Guard struct {
	// Client reads from a cache with the indexes.
	Client client.Client
	// Recorder gets an event when a deletion has to wait.
	Recorder events.EventRecorder
	// Uses are all ways in which the objects are used.
	Uses []Use
}

// Keep adds the finalizer to an object, or removes it if the object is being deleted and nobody uses it.
func (g Guard) Keep(ctx context.Context, obj client.Object) error {
	if obj.GetDeletionTimestamp() == nil {
		return g.patch(ctx, obj, controllerutil.AddFinalizer)
	}
	if !controllerutil.ContainsFinalizer(obj, constants.FinalizerGardenerName) {
		return nil
	}
	users, err := g.users(ctx, obj)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		g.Recorder.Eventf(obj, nil, corev1.EventTypeNormal, constants.EventResourceReferenced, constants.EventActionDelete,
			"Deletion waits, as it is used by %s", strings.Join(users, ", "))
		return nil
	}
	return client.IgnoreNotFound(g.patch(ctx, obj, controllerutil.RemoveFinalizer))
}

func (g Guard) patch(ctx context.Context, obj client.Object, change func(client.Object, string) bool) error {
	return kube.PatchMetadata(ctx, g.Client, obj, func(o *metav1.PartialObjectMetadata) { change(o, constants.FinalizerGardenerName) })
}

// users names some users of an object, for people.
func (g Guard) users(ctx context.Context, obj client.Object) ([]string, error) {
	var names []string
	for _, use := range g.Uses {
		gvk, err := apiutil.GVKForObject(use.User, g.Client.Scheme())
		if err != nil {
			return nil, err
		}
		list := use.Users.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has its original's type
		// A few are enough to say that there are some. Each of thousands of users brings us here when it goes.
		options := append(use.By(obj), client.UnsafeDisableDeepCopy, client.Limit(namedUsers+1))
		if err := g.Client.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list every %s that uses %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
		}
		var users []string
		err = meta.EachListItem(list, func(user runtime.Object) error {
			accessor, err := meta.Accessor(user)
			if err == nil {
				users = append(users, fmt.Sprintf("%s %s", gvk.Kind, strings.TrimPrefix(accessor.GetNamespace()+"/"+accessor.GetName(), "/")))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		slices.Sort(users)
		if len(users) > namedUsers {
			users = append(users[:namedUsers], "others of kind "+gvk.Kind)
		}
		names = append(names, users...)
	}
	return names, nil
}
