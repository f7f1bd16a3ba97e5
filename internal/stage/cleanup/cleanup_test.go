package cleanup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Volumes are not deleted before the pods that use them, and StatefulSets create new claims.
func TestDeleteWorkloads(t *testing.T) {
	object := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	system := object("system")
	system.Labels = map[string]string{"shoot.gardener.cloud/no-cleanup": "true"}
	controlled := object("controlled")
	controlled.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "system", Controller: new(true)}}
	shoot := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		&appsv1.Deployment{ObjectMeta: object("user")}, &appsv1.Deployment{ObjectMeta: system}, &appsv1.StatefulSet{ObjectMeta: object("user")},
		&batchv1.Job{ObjectMeta: object("user")}, &corev1.Pod{ObjectMeta: object("user")}, &corev1.Pod{ObjectMeta: controlled},
	).Build()
	if err := deleteWorkloads(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	for kind, tc := range map[string]struct {
		list client.ObjectList
		want []string
	}{
		"Deployment":  {&appsv1.DeploymentList{}, []string{"system"}},
		"StatefulSet": {&appsv1.StatefulSetList{}, nil},
		"Job":         {&batchv1.JobList{}, nil},
		"Pod":         {&corev1.PodList{}, []string{"controlled"}},
	} {
		if err := shoot.List(t.Context(), tc.list); err != nil {
			t.Fatal(err)
		}
		var left []string
		if err := meta.EachListItem(tc.list, func(item runtime.Object) error {
			left = append(left, item.(client.Object).GetName()) //nolint:forcetypeassert // lists have nothing else
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, left); diff != "" {
			t.Errorf("objects of kind %s (-want +got):\n%s", kind, diff)
		}
	}
}
