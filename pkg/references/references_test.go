package references

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

func TestInject(t *testing.T) {
	name := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	spec := corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{name("pull")},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: name("mounted")}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: name("projected")}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: name("projected")}},
			}}}},
		},
		InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name("all")}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name("all")}},
		}}},
		Containers: []corev1.Container{{Env: []corev1.EnvVar{
			{Value: "x"},
			{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name("one")}}},
			{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: name("one")}}},
		}}},
	}
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"other": "stays", AnnotationKey(KindSecret, "gone"): "gone", "reference.resources.gardener.cloud/plan-12345678": "stays too",
	}}}
	cronJob.Spec.JobTemplate.Spec.Template.Spec = spec
	if err := Inject(cronJob, map[string]string{AnnotationKey(KindSecret, "extra"): "extra"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{AnnotationKey(KindSecret, "extra"): "extra", AnnotationKey(KindSecret, "pull"): "pull"}
	for _, name := range []string{"mounted", "projected", "all", "one"} {
		want[AnnotationKey(KindConfigMap, name)], want[AnnotationKey(KindSecret, name)] = name, name
	}
	if diff := cmp.Diff(want, cronJob.Spec.JobTemplate.Annotations); diff != "" {
		t.Errorf("job template (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, cronJob.Spec.JobTemplate.Spec.Template.Annotations); diff != "" {
		t.Errorf("pod template (-want +got):\n%s", diff)
	}
	want["other"], want["reference.resources.gardener.cloud/plan-12345678"] = "stays", "stays too"
	if diff := cmp.Diff(want, cronJob.Annotations); diff != "" {
		t.Errorf("CronJob (-want +got):\n%s", diff)
	}
	mr := &resourcesv1alpha1.ManagedResource{Spec: resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{name("s")}}}
	if err := Inject(mr, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"reference.resources.gardener.cloud/secret-043a7187": "s"}, mr.Annotations); diff != "" {
		t.Errorf("ManagedResource (-want +got):\n%s", diff)
	}
	var none client.Object = &corev1.Secret{}
	if Inject(none, nil) == nil {
		t.Error("a Secret has references")
	}
}
