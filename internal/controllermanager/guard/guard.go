package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/kube"
)

// namedUsers is how many users of each kind the event about a blocked deletion names.
const namedUsers = 3

// Guard keeps objects of one kind.
type Guard struct {
	// GardenCache reads from a cache with the index of package references.
	GardenCache client.Client
	// Recorder records an event when a deletion has to wait.
	Recorder events.EventRecorder
	// Users are empty objects of the kinds that can refer to the guarded objects.
	Users []client.Object
}

// Keep adds the finalizer to an object, or removes it if the object is being deleted and not used.
func (g Guard) Keep(ctx context.Context, obj client.Object) error {
	if obj.GetDeletionTimestamp() == nil {
		return kube.AddFinalizer(ctx, g.GardenCache, obj, constants.FinalizerGardenerName)
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
	return kube.RemoveFinalizer(ctx, g.GardenCache, obj, constants.FinalizerGardenerName)
}

// users returns some of the objects that use an object, for a message.
func (g Guard) users(ctx context.Context, obj client.Object) ([]string, error) {
	guarded, err := apiutil.GVKForObject(obj, g.GardenCache.Scheme())
	if err != nil {
		return nil, err
	}
	var names []string
	for _, kind := range g.Users {
		gvk, err := apiutil.GVKForObject(kind, g.GardenCache.Scheme())
		if err != nil {
			return nil, err
		}
		// A few are enough for the message. Each of thousands of users causes another reconciliation when it is deleted.
		keys, err := references.Referrers(ctx, g.GardenCache, kind, references.RefOf(guarded.Kind, obj), namedUsers+1)
		if err != nil {
			return nil, err
		}
		var users []string
		for _, key := range keys {
			users = append(users, fmt.Sprintf("%s %s", gvk.Kind, strings.TrimPrefix(key.String(), "/")))
		}
		slices.Sort(users)
		if len(users) > namedUsers {
			users = append(users[:namedUsers], "others of kind "+gvk.Kind)
		}
		names = append(names, users...)
	}
	return names, nil
}
