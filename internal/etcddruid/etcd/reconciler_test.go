package etcd

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, druidv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	etcd := mainEtcd()
	etcd.Annotations = map[string]string{druidv1alpha1.SuspendEtcdSpecReconcileAnnotation: ""} // so that only the status is written
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(etcd).WithStatusSubresource(etcd).Build()
	behind.Case[*druidv1alpha1.Etcd]{
		API: api, Object: etcd, Changed: changed(),
		Status: func(etcd *druidv1alpha1.Etcd) any { return etcd.Status.Ready },
		Other:  func(etcd *druidv1alpha1.Etcd) { etcd.Status.Ready = new(true) },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{client: cache, api: api, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), applied: map[types.UID]applied{}}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(etcd)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// An error that says something else each time is retried with a delay.
func TestChanged(t *testing.T) {
	failed := func(text string, at int64) *druidv1alpha1.Etcd {
		return &druidv1alpha1.Etcd{Status: druidv1alpha1.EtcdStatus{LastErrors: []druidv1alpha1.LastError{{Code: errReconcile, Description: text, ObservedAt: metav1.Unix(at, 0)}}}}
	}
	if changed().Update(event.UpdateEvent{ObjectOld: failed("a", 1), ObjectNew: failed("b", 2)}) {
		t.Error("another text of an error is a reason to reconcile at once")
	}
	if !changed().Update(event.UpdateEvent{ObjectOld: &druidv1alpha1.Etcd{}, ObjectNew: failed("a", 1)}) {
		t.Error("an error that a pass with an old cache does not remove stays")
	}
}
