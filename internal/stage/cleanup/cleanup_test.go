package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/errorcode"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// newShoot returns a shoot with objects.
func newShoot(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Watch: stagetest.WatchWithoutList}).Build()
}

// snapshot returns a VolumeSnapshot, a VolumeGroupSnapshot or the content of one.
func snapshot(kind string, meta metav1.ObjectMeta) client.Object {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("snapshot.storage.k8s.io/v1")
	if strings.HasPrefix(kind, "VolumeGroup") {
		object.SetAPIVersion("groupsnapshot.storage.k8s.io/v1beta1")
	}
	object.SetKind(kind)
	object.SetNamespace(meta.Namespace)
	object.SetName(meta.Name)
	object.SetLabels(meta.Labels)
	object.SetFinalizers(meta.Finalizers)
	if meta.DeletionTimestamp != nil {
		object.SetDeletionTimestamp(meta.DeletionTimestamp)
	}
	return object
}

// left returns what is left of the objects, as kind and name.
func left(t *testing.T, shoot client.Client, objects []client.Object) []string {
	t.Helper()
	var names []string
	for _, object := range objects {
		gvk, err := shoot.GroupVersionKindFor(object)
		if err != nil {
			t.Fatal(err)
		}
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(gvk)
		if err := shoot.Get(t.Context(), client.ObjectKeyFromObject(object), metadata); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		} else if err == nil {
			names = append(names, gvk.Kind+" "+object.GetName())
		}
	}
	slices.Sort(names)
	return names
}

func TestCleanup(t *testing.T) {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	global := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	labelled := func(name, label, value string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{label: value}}
	}
	system := named("system")
	system.Labels = map[string]string{"shoot.gardener.cloud/no-cleanup": "true"}
	controlled := named("controlled")
	controlled.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "system", Controller: new(true)}}
	claiming := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "user"}},
	}}}}
	all := func() []client.Object {
		return []client.Object{
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: global("user")},
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: global("user")},
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: labelled("managed", "resources.gardener.cloud/managed-by", "gardener")},
			&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: global("user")},
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: global("user")},
			&apiregistrationv1.APIService{ObjectMeta: global("v1.user")},
			&apiregistrationv1.APIService{ObjectMeta: labelled("v1.", "kube-aggregator.kubernetes.io/automanaged", "onstart")},
			&apiextensionsv1.CustomResourceDefinition{ObjectMeta: global("users.example.com")},
			&apiextensionsv1.CustomResourceDefinition{ObjectMeta: labelled("system.example.com", "shoot.gardener.cloud/no-cleanup", "true")},
			&appsv1.Deployment{ObjectMeta: named("user")}, &appsv1.Deployment{ObjectMeta: system},
			&appsv1.Deployment{ObjectMeta: named("volume"), Spec: appsv1.DeploymentSpec{Template: claiming}},
			&appsv1.StatefulSet{ObjectMeta: named("user"), Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{}}}},
			&appsv1.DaemonSet{ObjectMeta: named("user")}, &appsv1.ReplicaSet{ObjectMeta: named("user")},
			&corev1.ReplicationController{ObjectMeta: named("user")},
			&batchv1.CronJob{ObjectMeta: named("user")}, &batchv1.Job{ObjectMeta: named("user")},
			&corev1.Pod{ObjectMeta: named("user")}, &corev1.Pod{ObjectMeta: named("volume"), Spec: claiming.Spec}, &corev1.Pod{ObjectMeta: controlled},
			&networkingv1.Ingress{ObjectMeta: named("user")},
			&corev1.Service{ObjectMeta: named("kubernetes")}, &corev1.Service{ObjectMeta: named("user")},
			&corev1.Service{ObjectMeta: named("balanced"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
			&corev1.PersistentVolumeClaim{ObjectMeta: named("user")}, &corev1.PersistentVolume{ObjectMeta: global("user")},
			snapshot("VolumeSnapshot", named("user")), snapshot("VolumeSnapshotContent", global("user")), snapshot("VolumeSnapshot", system),
			snapshot("VolumeGroupSnapshot", named("user")), snapshot("VolumeGroupSnapshotContent", global("user")), snapshot("VolumeGroupSnapshot", system),
		}
	}
	for name, tc := range map[string]struct {
		onlyInfrastructure bool
		want               []string
	}{
		"everything": {want: []string{
			"APIService v1.", "CustomResourceDefinition system.example.com", "Deployment system", "MutatingWebhookConfiguration managed",
			"Pod controlled", "Service kubernetes", "VolumeGroupSnapshot system", "VolumeSnapshot system",
		}},
		"what costs money": {onlyInfrastructure: true, want: []string{
			"APIService v1.", "APIService v1.user", "CronJob user", "CustomResourceDefinition system.example.com",
			"CustomResourceDefinition users.example.com", "DaemonSet user", "Deployment system", "Deployment user", "Ingress user", "Job user",
			"MutatingWebhookConfiguration managed", "Pod controlled", "Pod user", "ReplicaSet user", "ReplicationController user",
			"Service kubernetes", "Service user", "VolumeGroupSnapshot system", "VolumeSnapshot system",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := newShoot(t, all()...)
			in := Inputs{Run: &stage.Run{Target: stage.NewConnectedTarget(shoot, nil), Clock: clocktesting.NewFakePassiveClock(now)}, OnlyInfrastructure: tc.onlyInfrastructure}
			for _, task := range Tasks(in) {
				if err := task.Run(t.Context()); err != nil {
					t.Fatalf("%s: %v", task.ID, err)
				}
			}
			if diff := cmp.Diff(tc.want, left(t, shoot, all())); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

// A shoot need not have the CustomResourceDefinitions of snapshots.
func TestNoSnapshots(t *testing.T) {
	shoot := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}}
		},
	}).Build()
	in := Inputs{Run: &stage.Run{Target: stage.NewConnectedTarget(shoot, nil), Clock: clocktesting.NewFakePassiveClock(now)}}
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "clean-snapshots"); err != nil {
		t.Error(err)
	}
}

// What is not deleted is named in the error.
func TestGone(t *testing.T) {
	k := kind{gvk: corev1.SchemeGroupVersion.WithKind("PersistentVolume")}
	err := k.gone([]client.Object{
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
	})
	if err == nil || !strings.Contains(err.Error(), "2 objects of kind PersistentVolume are not deleted yet in the shoot: a, b") {
		t.Errorf("gone() = %v", err)
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
				_, err := kind{gvk: corev1.SchemeGroupVersion.WithKind("Pod"), list: &corev1.PodList{}}.delete(t.Context(), shoot)
				if took := time.Since(begin); took > tc.most || !slices.Contains(errorcode.Of(err), corev1beta1.ErrorCleanupClusterResources) {
					t.Errorf("delete() took %s and returned %v, want an error within %s", took, err, tc.most)
				}
			})
		})
	}
}

// A member of a project deletes as many shoots as there are workers, each with an object that keeps its finalizer. Repeated passes must leave the workers to the
// shoots of others.
func TestRepeatedWaitIsShort(t *testing.T) {
	for name, tc := range map[string]struct {
		failed []string
		want   time.Duration
	}{
		"the first time":            {want: stage.ExtensionTimeout},
		"after another task failed": {failed: []string{"clean-webhooks"}, want: stage.ExtensionTimeout},
		"again":                     {failed: []string{"clean-webhooks", "clean-shoot"}, want: repeatedWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shoot := newShoot(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "held", Finalizers: []string{"example.com/x"}}})
				in := Inputs{Run: &stage.Run{Target: stage.NewConnectedTarget(shoot, nil), Clock: clocktesting.NewFakePassiveClock(now)}, Failed: tc.failed}
				begin := time.Now()
				err := stagetest.RunTask(t.Context(), t, Tasks(in), "clean-shoot")
				if took := time.Since(begin); took != tc.want || !slices.Contains(errorcode.Of(err), corev1beta1.ErrorCleanupClusterResources) || !strings.Contains(err.Error(), "held") {
					t.Errorf("it took %s and returned %v, want an error that names the pod after %s", took, err, tc.want)
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
	k := kind{gvk: corev1.SchemeGroupVersion.WithKind("Pod"), list: &corev1.PodList{}}
	if _, err := k.each(t.Context(), shoot, func(object client.Object) error {
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

// A program of users that responds for the API server of the shoot must not hold the worker by a list without an end.
func TestEndlessLists(t *testing.T) {
	for name, tc := range map[string]struct {
		perPage, pages int
	}{
		"of objects":     {perPage: 1, pages: maxPages},
		"of empty pages": {perPage: 0, pages: 1},
	} {
		t.Run(name, func(t *testing.T) {
			pages := 0
			shoot := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					if pages++; pages > maxPages {
						return errors.New("read on")
					}
					pods := list.(*corev1.PodList) //nolint:forcetypeassert // the test lists Pods
					pods.Items, pods.Continue = make([]corev1.Pod, tc.perPage), "more"
					return nil
				},
			})
			k := kind{gvk: corev1.SchemeGroupVersion.WithKind("Pod"), list: &corev1.PodList{}}
			_, err := k.each(t.Context(), shoot, func(client.Object) error { return nil })
			if pages != tc.pages || !slices.Contains(errorcode.Of(err), corev1beta1.ErrorCleanupClusterResources) {
				t.Errorf("each() returned %v after %d pages, want an error after %d", err, pages, tc.pages)
			}
		})
	}
}
