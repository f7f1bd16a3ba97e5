package kube

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeleteUnchanged deletes an object if it is still as it was read. A missing object is not an error.
func DeleteUnchanged(ctx context.Context, c client.Client, object client.Object) error {
	same := client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}
	return client.IgnoreNotFound(c.Delete(ctx, object, same))
}
