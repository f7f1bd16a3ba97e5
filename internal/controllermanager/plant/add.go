// Package plant checks the clusters that Plants register: whether the API server is available and every node is ready, on which infrastructure the
// cluster runs, and which Kubernetes.
//
// Reads Plants, and the Secrets with their kubeconfigs; writes the status of Plants. Package referenceprotection keeps the Secrets. Unlike other
// controllers, it works periodically: what it looks at is in foreign clusters. Source: concepts-older.txt, "Plant" Controller.
package plant

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// name is the name of the controller.
const name = "plant"

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many clusters are checked at the same time.
	ConcurrentSyncs int
	// SyncPeriod is how often each cluster is checked.
	SyncPeriod time.Duration
	// Blocked returns why not to connect to a host, or "", as destination.Public does. Kubeconfigs are those of tenants.
	Blocked func(host string) string
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// A change of the status is none of the cluster: otherwise one whose answers differ each time would be checked without a pause.
		For(&corev1beta1.Plant{}, builder.WithPredicates(watch.NoDeletes(), predicate.GenerationChangedPredicate{})).
		// A new kubeconfig counts at once. The cache has only metadata of Secrets, so any change counts.
		WatchesMetadata(kube.Metadata(corev1.SchemeGroupVersion.WithKind(references.Secret)),
			watch.Referrers(mgr.GetClient(), references.Secret, &corev1beta1.Plant{}),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Complete(&reconciler{Values: v, gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(name)})
}
