package copybackupstask

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	task := &druidv1alpha1.EtcdCopyBackupsTask{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "t"}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: jobName("t")}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(task, job).WithStatusSubresource(task).Build()
	behind.Case[*druidv1alpha1.EtcdCopyBackupsTask]{
		API: api, Object: task, Changed: changed(),
		Status: func(task *druidv1alpha1.EtcdCopyBackupsTask) any { return task.Status.LastError },
		Other:  func(task *druidv1alpha1.EtcdCopyBackupsTask) { task.Status.LastError = new("of the pass before") },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{client: cache, api: api, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(task)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// An error that says something else each time is retried with a delay.
func TestChanged(t *testing.T) {
	failed := func(text string) *druidv1alpha1.EtcdCopyBackupsTask {
		return &druidv1alpha1.EtcdCopyBackupsTask{Status: druidv1alpha1.EtcdCopyBackupsTaskStatus{LastError: &text}}
	}
	if changed().Update(event.UpdateEvent{ObjectOld: failed("a"), ObjectNew: failed("b")}) {
		t.Error("another text of an error is a reason to reconcile at once")
	}
}
