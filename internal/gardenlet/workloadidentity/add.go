// Package workloadidentity fills Secrets of the seed with tokens of WorkloadIdentities, and renews them.
//
// It reads and writes labelled Secrets of the seed, and asks the garden for tokens. Before, it reads in the garden whether the owner of the
// Secret's namespace, a Shoot or the Seed, or the BackupBucket of its backups refers to the WorkloadIdentity. Source: concepts.txt, gardenlet, "TokenRequestor Controller For
// WorkloadIdentitys".
package workloadidentity

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

const name = "token-requestor-workload-identity"

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// GardenClient asks the garden for tokens, and reads there without a cache who may have them.
	GardenClient client.Client
	// SeedClient reads and writes Secrets of the seed, which are in no cache, and reads their namespaces.
	SeedClient client.Client
	// TokenExpiration is for how long tokens are asked to be good.
	TokenExpiration time.Duration
	// ConcurrentSyncs is how many Secrets are worked on at once.
	ConcurrentSyncs int
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	// Only the metadata is kept. The data is read when it is needed.
	secrets := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"}}
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs, ReconciliationTimeout: passTimeout}).
		For(secrets, builder.WithPredicates(predicate.NewPredicateFuncs(responsible))).
		Complete(New(v))
}

// New returns a reconciler without a controller: it fills a Secret when it is asked to.
func New(v Values) reconcile.Reconciler {
	return &reconciler{Values: v, early: func() float64 { return rand.Float64() * maxEarly }} // it spreads load, and keeps no secret
}

// responsible is whether a Secret is to be filled.
func responsible(secret client.Object) bool {
	return secret.GetLabels()[securityv1alpha1.LabelPurpose] == securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor
}
