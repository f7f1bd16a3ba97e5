package availability

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const prefix = "high-availability-config.resources.gardener.cloud/"

func TestChanged(t *testing.T) {
	namespace := func(consider string, annotations ...string) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{prefix + "consider": consider}, Annotations: map[string]string{}}}
		for i := 0; i < len(annotations); i += 2 {
			n.Annotations[annotations[i]] = annotations[i+1]
		}
		return n
	}
	for name, tc := range map[string]struct {
		before, after *corev1.Namespace
		want          bool
	}{
		"a zone is gone":             {namespace("true", prefix+"zones", "a,b"), namespace("true", prefix+"zones", "a"), true},
		"tolerant now":               {namespace("true"), namespace("true", prefix+"failure-tolerance-type", "node"), true},
		"expressly tolerant of none": {namespace("true"), namespace("true", prefix+"failure-tolerance-type", ""), true},
		"pinned to its zones":        {namespace("true"), namespace("true", prefix+"zone-pinning", "true"), true},
		"considered now":             {namespace("false", prefix+"zones", "a"), namespace("true", prefix+"zones", "a"), true},
		"something else":             {namespace("true", prefix+"zones", "a"), namespace("true", prefix+"zones", "a", "other", "b"), false},
		"not considered":             {namespace("false", prefix+"zones", "a,b"), namespace("false", prefix+"zones", "a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := changed().Update(event.TypedUpdateEvent[*corev1.Namespace]{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("Update() = %t, want %t", got, tc.want)
			}
		})
	}
	if changed().Create(event.TypedCreateEvent[*corev1.Namespace]{Object: namespace("true")}) {
		t.Error("all workloads are patched when the process starts")
	}
}

func TestReconcile(t *testing.T) {
	meta := func(namespace, name, managedBy string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"resources.gardener.cloud/managed-by": managedBy}}
	}
	var patched []string
	var failure error
	c := fake.NewClientBuilder().WithObjects(
		&appsv1.Deployment{ObjectMeta: meta("a", "deployment", "me")}, &appsv1.Deployment{ObjectMeta: meta("a", "of-others", "you")},
		&appsv1.Deployment{ObjectMeta: meta("b", "elsewhere", "me")}, &appsv1.StatefulSet{ObjectMeta: meta("a", "set", "me")},
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta("a", "autoscaler", "me")},
	).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			patched = append(patched, object.GetName())
			return failure
		},
	}).Build()
	r := &reconciler{target: c, targetAPI: c, managedBy: "me"}
	for _, failure = range []error{errors.New("the webhook does not respond"), nil} {
		patched = nil
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}); !errors.Is(err, failure) {
			t.Errorf("Reconcile() = %v, want %v", err, failure)
		}
		if diff := cmp.Diff([]string{"deployment", "set", "autoscaler"}, patched); diff != "" {
			t.Errorf("patched objects (-want +got):\n%s", diff)
		}
	}
}
