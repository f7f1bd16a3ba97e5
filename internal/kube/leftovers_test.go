package kube

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// owned are the fields of the Deployment of the test that have a manager, as a kube-apiserver writes them.
const owned = `{"f:spec":{"f:template":{
	"f:metadata":{"f:labels":{"f:app":{}},"f:annotations":{"f:kubectl.kubernetes.io/restartedAt":{}}},
	"f:spec":{
		"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:name":{}}},
		"f:containers":{"k:{\"name\":\"server\"}":{".":{},"f:name":{},
			"f:env":{".":{},"k:{\"name\":\"BY_HAND\"}":{".":{},"f:name":{},"f:value":{}}},
			"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/etc/config\"}":{".":{},"f:mountPath":{},"f:name":{}}}}}}}}}`

// TestApplyDeployment plays a kube-apiserver: the webhook of one extension adds a volume and a container, and that of another one has added more before.
func TestApplyDeployment(t *testing.T) {
	desired := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--a", Name: "kube-apiserver"}}
	desired.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "server"}},
		Spec: corev1.PodSpec{
			Volumes:    []corev1.Volume{{Name: "config"}},
			Containers: []corev1.Container{{Name: "server", VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config"}}}},
		},
	}
	still := func(d *appsv1.Deployment) {
		spec := &d.Spec.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "still"})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "still", MountPath: "/etc/still"})
		spec.Containers = append(spec.Containers, corev1.Container{Name: "sidecar", Env: []corev1.EnvVar{{Name: "A"}}})
	}
	once := func(d *appsv1.Deployment) {
		spec := &d.Spec.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "once"})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "once", MountPath: "/etc/once"})
		spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "ONCE"})
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: "once", VolumeMounts: []corev1.VolumeMount{{Name: "once", MountPath: "/x"}}})
		d.Spec.Template.Labels["once"], d.Spec.Template.Annotations["once"] = "allowed", "checksum"
	}
	byHand := func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "BY_HAND", Value: "1"}}
	}
	with := func(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := desired.DeepCopy()
		for _, change := range changes {
			change(d)
		}
		return d
	}
	for name, tc := range map[string]struct {
		live, want *appsv1.Deployment
		requests   []string
	}{
		"nothing was added":           {live: with(byHand), want: with(byHand)},
		"all is added again":          {live: with(byHand, still), want: with(byHand, still), requests: []string{"dry run"}},
		"some of it is added no more": {live: with(byHand, still, once), want: with(byHand, still), requests: []string{"dry run", "patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			live, requests := tc.live, []string(nil)
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
				Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					answer := live.DeepCopy()
					answer.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "gardenlet", FieldsV1: &metav1.FieldsV1{Raw: []byte(owned)}}}
					content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(answer)
					object.(interface{ SetUnstructuredContent(map[string]any) }).SetUnstructuredContent(content) //nolint:forcetypeassert // what kube.ApplyOne applies
					return err
				},
				Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					before, err := json.Marshal(live)
					if err != nil {
						return err
					}
					data, err := patch.Data(object)
					if err != nil {
						return err
					}
					after, err := strategicpatch.StrategicMergePatch(before, data, &appsv1.Deployment{})
					if err != nil {
						return err
					}
					answer := &appsv1.Deployment{}
					if err := json.Unmarshal(after, answer); err != nil {
						return err
					}
					how := (&client.PatchOptions{}).ApplyOptions(options)
					if len(how.DryRun) > 0 {
						still(answer) // nothing of it is left in the patched object
						requests = append(requests, "dry run")
					} else {
						live = answer
						requests = append(requests, "patch")
					}
					answer.DeepCopyInto(object.(*appsv1.Deployment)) //nolint:forcetypeassert // the only kind here
					return nil
				},
			})
			if err := ApplyDeployment(t.Context(), c, "gardenlet", desired); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.requests, requests); diff != "" {
				t.Errorf("requests after the application (-want +got):\n%s", diff)
			}
			// A server has an empty list or none.
			want, got := tc.want.DeepCopy(), live
			for _, d := range []*appsv1.Deployment{want, got} {
				if len(d.Spec.Template.Spec.InitContainers) == 0 {
					d.Spec.Template.Spec.InitContainers = nil
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Deployment (-want +got):\n%s", diff)
			}
		})
	}
}
