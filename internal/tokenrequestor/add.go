package tokenrequestor

import (
	"cmp"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// Values are the settings of the controller.
type Values struct {
	// Class is the class of Secrets that are filled. Empty means all classes.
	Class string
	// TargetNamespace is the namespace of all ServiceAccounts. Empty means that of each Secret's annotation.
	TargetNamespace string
	// Concurrency is how many Secrets are reconciled at once.
	Concurrency int
	// Clock is for renewal times. Nil means the real clock.
	Clock clock.PassiveClock
	// Valid says whether a token whose renewal is not due is still trusted, for example by the key that has signed it. One that is not is
	// replaced. Nil means that all are.
	Valid func(token string) bool
}

// Add adds the controller to a manager. The source cluster has the Secrets, the target the ServiceAccounts; they may be the same.
func Add(mgr manager.Manager, sourceCluster, targetCluster cluster.Cluster, v Values) error {
	config := targetCluster.GetConfig()
	// ServiceAccounts are rarely read, and there may be many, so they are not cached.
	live, err := client.New(config, client.Options{
		Scheme: targetCluster.GetScheme(), Mapper: targetCluster.GetRESTMapper(), HTTPClient: targetCluster.GetHTTPClient(),
	})
	if err != nil {
		return err
	}
	r := newReconciler(v)
	r.sourceClient, r.sourceReader, r.targetClient, r.caBundle = sourceCluster.GetClient(), sourceCluster.GetAPIReader(), live, bundleOf(config)
	name := "token-requestor"
	if v.Class != "" {
		name += "-" + v.Class
	}
	c, err := controller.New(name, mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: cmp.Or(v.Concurrency, 1)})
	if err != nil {
		return err
	}
	// Only metadata is watched; the data is read when it is needed.
	secrets := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"}}
	return c.Watch(source.Kind[client.Object](sourceCluster.GetCache(), secrets, &handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.responsible)))
}

// New returns a Reconciler without a controller, which is called directly. Both clients have to read from the API server. The bundle is the CA
// bundle of the target cluster.
func New(source, target client.Client, caBundle []byte, v Values) *Reconciler {
	r := newReconciler(v)
	r.sourceClient, r.sourceReader, r.targetClient = source, source, target
	r.caBundle = func() ([]byte, error) { return caBundle, nil }
	return r
}

func newReconciler(v Values) *Reconciler {
	r := &Reconciler{
		Class: v.Class, TargetNamespace: v.TargetNamespace, clock: v.Clock, valid: v.Valid,
		early: func() float64 { return rand.Float64() * maxEarly }, // it spreads load, and keeps no secret
	}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	if r.valid == nil {
		r.valid = func(string) bool { return true }
	}
	return r
}

// responsible says whether a Secret is filled by this controller.
func (r *Reconciler) responsible(secret client.Object) bool {
	labels := secret.GetLabels()
	return labels[resourcesv1alpha1.ResourceManagerPurpose] == resourcesv1alpha1.LabelPurposeTokenRequest &&
		(r.Class == "" || labels[resourcesv1alpha1.ResourceManagerClass] == r.Class)
}
