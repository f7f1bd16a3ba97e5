package project

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	deleted := &corev1beta1.Project{Spec: corev1beta1.ProjectSpec{Namespace: new("garden-p")}}
	deleted.Name, deleted.Finalizers, deleted.DeletionTimestamp = "p", []string{constants.FinalizerGardenerName}, new(metav1.Unix(1, 0))
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: "s"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deleted, shoot).WithStatusSubresource(deleted).Build()
	behind.Case[*corev1beta1.Project]{
		API: api, Object: deleted, Changed: projectChanged(),
		Status: func(p *corev1beta1.Project) any { return p.Status.Phase },
		Other:  func(p *corev1beta1.Project) { p.Status.Phase = corev1beta1.ProjectFailed },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{gardenCache: cache, gardenAPI: api, recorder: events.NewFakeRecorder(10)}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(deleted)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

func TestProjectChanged(t *testing.T) {
	now := metav1.NewTime(time.Unix(1, 0))
	active := &corev1beta1.Project{Status: corev1beta1.ProjectStatus{LastActivityTimestamp: &now, StaleSinceTimestamp: &now}}
	if projectChanged().Update(event.UpdateEvent{ObjectOld: &corev1beta1.Project{}, ObjectNew: active}) {
		t.Error("what other controllers write to the status reconciles the Project")
	}
}
