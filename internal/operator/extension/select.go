package extension

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// Select returns requests for the Extensions that a function selects, of all of them, of which there are few. It is for controllers that watch other
// objects.
func Select(ctx context.Context, runtimeCache client.Reader, which func(*operatorv1alpha1.Extension) bool) []reconcile.Request {
	list := &operatorv1alpha1.ExtensionList{}
	if err := runtimeCache.List(ctx, list); err != nil {
		logf.FromContext(ctx).Error(err, "Failed listing Extensions")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if which(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
