package cleanup

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/errorcode"
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

// A user's webhook that is created again and again must not hold the worker: other shoots wait for it.
func TestSlowWebhooks(t *testing.T) {
	pods := make([]client.Object, 1000)
	for i := range pods {
		pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p-%d", i)}}
	}
	for name, tc := range map[string]struct {
		latency, most time.Duration
	}{
		"not answering": {latency: time.Hour, most: requestTimeout},
		"just in time":  {latency: requestTimeout - time.Second, most: deletionsTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shoot := interceptor.NewClient(fake.NewClientBuilder().WithObjects(pods...).Build(), interceptor.Funcs{
					Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
						select {
						case <-time.After(tc.latency):
							return c.Delete(ctx, object, opts...)
						case <-ctx.Done():
							return ctx.Err()
						}
					},
				})
				begin := time.Now()
				err := deleteUsers(t.Context(), shoot, "Pod", &corev1.PodList{}, nil)
				if took := time.Since(begin); took > tc.most || !slices.Contains(errorcode.Of(err), corev1beta1.ErrorCleanupClusterResources) {
					t.Errorf("deleteUsers() took %s and returned %v, want an error within %s", took, err, tc.most)
				}
			})
		})
	}
}

// Users decide how many objects there are.
func TestObjectsAreReadByPages(t *testing.T) {
	var limits []int64
	shoot := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			o := (&client.ListOptions{}).ApplyOptions(opts)
			limits = append(limits, o.Limit)
			pods := list.(*corev1.PodList) //nolint:forcetypeassert // the test lists Pods
			pods.Items = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p" + o.Continue}}}
			pods.Continue = map[string]string{"": "a", "a": "b"}[o.Continue]
			return nil
		},
	})
	var names []string
	if err := eachObject(t.Context(), shoot, &corev1.PodList{}, func(object client.Object) error {
		names = append(names, object.GetName())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p", "pa", "pb"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{pageSize, pageSize, pageSize}, limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}
