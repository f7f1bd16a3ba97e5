// Package snapshot compares the objects of a cluster with those of an earlier time.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// passing are the resources whose objects are created and deleted by controllers all the time.
var passing = []string{
	"certificatesigningrequests", "componentstatuses", "controllerrevisions", "endpoints", "endpointslices", "events", "leases", "pods", "replicasets",
}

// interval is how often a cluster is listed until it is as before. All of its kinds are too many to watch.
const interval = time.Second

// Take lists every object of a cluster, as "resource.group namespace name", sorted, except for those in the given namespaces, and for those that
// the garbage collector deletes some time after nothing refers to them any more.
func Take(ctx context.Context, config *rest.Config, without ...string) ([]string, error) {
	// Every kind is listed: the usual limit of requests would be most of the time.
	config = rest.CopyConfig(config)
	config.QPS = -1
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := resources.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("list the kinds of the cluster: %w", err)
	}
	var found []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if !kept(version.Group, resource) {
				continue
			}
			list, err := objects.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", resource.Name, err)
			}
			for _, object := range list.Items {
				if object.Labels[resourcesv1alpha1.GarbageCollectable] == "" && !slices.Contains(without, object.Namespace) && (resource.Name != "namespaces" || !slices.Contains(without, object.Name)) {
					found = append(found, strings.Join([]string{resource.Name + "." + version.Group, object.Namespace, object.Name}, " "))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// kept reports whether objects of a resource stay until they are deleted explicitly.
func kept(group string, resource metav1.APIResource) bool {
	return !slices.Contains(passing, resource.Name) && group != "metrics.k8s.io" && slices.Contains(resource.Verbs, "list")
}

// Await waits until the objects are those of before, and returns the differences at the end of ctx: some objects take a moment longer to
// be deleted, such as volumes.
func Await(ctx context.Context, config *rest.Config, before []string, without ...string) error {
	last := errors.New("the cluster was not listed")
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		now, err := Take(ctx, config, without...)
		if err == nil {
			err = difference(before, now)
		}
		if err == nil || ctx.Err() == nil { // the last difference is more useful than the end of ctx
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return last
	}
	return nil
}

// difference returns the added and removed objects as an error, or nil. Both lists are sorted.
func difference(before, now []string) error {
	var lines []string
	for _, object := range now {
		if _, ok := slices.BinarySearch(before, object); !ok {
			lines = append(lines, "  left over: "+object)
		}
	}
	for _, object := range before {
		if _, ok := slices.BinarySearch(now, object); !ok {
			lines = append(lines, "  missing:   "+object)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("the cluster is not as before:\n%s", strings.Join(lines, "\n"))
}
