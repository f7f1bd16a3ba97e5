package stale

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1beta1.ProjectSpec{Namespace: new("garden-p")}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-p", Annotations: map[string]string{constants.ProjectSkipStaleCheck: "true"}}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(project, namespace).WithStatusSubresource(project).Build()
	behind.Case[*corev1beta1.Project]{
		API: api, Object: project, Changed: changed(),
		Status: func(p *corev1beta1.Project) any { return p.Status.StaleSinceTimestamp != nil },
		Other:  func(p *corev1beta1.Project) { p.Status.StaleSinceTimestamp = new(metav1.Unix(1, 0)) },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{
				Values:      Values{SyncPeriod: time.Hour, Clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0))},
				gardenCache: cache, gardenAPI: api, recorder: events.NewFakeRecorder(10),
			}
			read := &corev1beta1.Project{}
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(project), read); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Reconcile(t.Context(), read); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// A Project is deleted by the first attempt, unless it has changed since it was read.
func TestDelete(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1beta1.ProjectStatus{StaleSinceTimestamp: new(metav1.Unix(1, 0))}}
	for name, tc := range map[string]struct {
		change func(client.Client, *corev1beta1.Project) error
		want   func(error) bool
	}{
		"unchanged": {func(client.Client, *corev1beta1.Project) error { return nil }, apierrors.IsNotFound},
		"changed": {func(c client.Client, p *corev1beta1.Project) error {
			p.Spec.Description = new("in use")
			return c.Update(t.Context(), p)
		}, func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(project).Build()
			read := &corev1beta1.Project{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(project), read); err != nil {
				t.Fatal(err)
			}
			if err := tc.change(c, read.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			deleteErr := (&reconciler{gardenCache: c, recorder: events.NewFakeRecorder(1)}).delete(t.Context(), read)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(project), read); !tc.want(err) {
				t.Errorf("reading the Project after delete() = %v: %v", deleteErr, err)
			}
		})
	}
}
