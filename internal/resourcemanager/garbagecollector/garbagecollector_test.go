package garbagecollector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/references"
)

func TestReconcile(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	old := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(now.Add(-10 * time.Minute)),
			Labels: map[string]string{"resources.gardener.cloud/garbage-collectable-reference": "true"},
		}
	}
	refers := func(kind, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "a", Name: kind + name, Annotations: map[string]string{references.AnnotationKey(kind, name): name}}
	}
	young, unlabelled := old("a", "young"), old("a", "unlabelled")
	young.CreationTimestamp, unlabelled.Labels = metav1.NewTime(now.Add(-9*time.Minute)), nil
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := resourcesv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: young}, &corev1.Secret{ObjectMeta: unlabelled},
		// A ConfigMap is in use, but not the Secret with its name, and not one in another namespace.
		&corev1.Secret{ObjectMeta: old("a", "name")}, &corev1.ConfigMap{ObjectMeta: old("a", "name")}, &corev1.ConfigMap{ObjectMeta: old("b", "name")},
		&appsv1.Deployment{ObjectMeta: refers("configmap", "name")},
	}
	for name, referrer := range map[string]client.Object{
		"set": &appsv1.StatefulSet{ObjectMeta: refers("secret", "set")}, "daemon": &appsv1.DaemonSet{ObjectMeta: refers("secret", "daemon")},
		"job": &batchv1.Job{ObjectMeta: refers("secret", "job")}, "cron": &batchv1.CronJob{ObjectMeta: refers("secret", "cron")},
		"pod": &corev1.Pod{ObjectMeta: refers("secret", "pod")}, "mr": &resourcesv1alpha1.ManagedResource{ObjectMeta: refers("secret", "mr")},
	} {
		objects = append(objects, referrer, &corev1.Secret{ObjectMeta: old("a", name)})
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	r := &reconciler{client: c, syncPeriod: time.Hour, clock: clocktesting.NewFakePassiveClock(now)}
	result, err := r.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || result.RequeueAfter != time.Hour {
		t.Errorf("Reconcile() is %v, %v", result, err)
	}
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{secrets, configMaps} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	for _, s := range secrets.Items {
		left = append(left, "secret "+s.Namespace+"/"+s.Name)
	}
	for _, m := range configMaps.Items {
		left = append(left, "configmap "+m.Namespace+"/"+m.Name)
	}
	if diff := cmp.Diff([]string{
		"secret a/cron", "secret a/daemon", "secret a/job", "secret a/mr", "secret a/pod", "secret a/set", "secret a/unlabelled", "secret a/young", "configmap a/name",
	}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
