//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// passing are the resources whose objects come and go by themselves.
var passing = []string{
	"certificatesigningrequests", "componentstatuses", "controllerrevisions", "endpoints", "endpointslices", "events", "leases", "pods", "replicasets",
}

// snapshot is every object of the garden and of the seed, which are one cluster here, but for those in namespaces to pass over.
func (c cluster) snapshot(ctx context.Context, without ...string) ([]string, error) {
	objects, err := metadata.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	lists, err := discovery.ServerPreferredResources(c.clientset.Discovery())
	if err != nil {
		return nil, err
	}
	var found []string
	for _, resources := range lists {
		version, err := schema.ParseGroupVersion(resources.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range resources.APIResources {
			name := resource.Name
			if slices.Contains(passing, name) || version.Group == "metrics.k8s.io" || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			list, err := objects.Resource(version.WithResource(name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for _, object := range list.Items {
				if !slices.Contains(without, object.Namespace) {
					found = append(found, strings.Join([]string{name + "." + version.Group, object.Namespace, object.Name}, " "))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// expectAsBefore waits until there is what there was: some things go a moment later, such as volumes.
func (c cluster) expectAsBefore(t *testing.T, before []string, without ...string) {
	t.Helper()
	var diff string
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, patience, true, func(ctx context.Context) (bool, error) {
		now, err := c.snapshot(ctx, without...)
		if err != nil {
			diff = err.Error()
			return false, nil
		}
		diff = cmp.Diff(before, now)
		return diff == "", nil
	}); err != nil {
		t.Errorf("garden and seed are not as before (-before +after):\n%s", diff)
	}
}
