package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// The namespace of an extension has the pod security level of its ControllerRegistration.
func TestNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        map[string]string
	}{
		"no level": {want: map[string]string{"gardener.cloud/role": "extension", "controllerregistration.core.gardener.cloud/name": "local"}},
		"baseline": {
			annotations: map[string]string{"security.gardener.cloud/pod-security-enforce": "baseline"},
			want: map[string]string{
				"gardener.cloud/role": "extension", "controllerregistration.core.gardener.cloud/name": "local", "pod-security.kubernetes.io/enforce": "baseline",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			ci.Spec.RegistrationRef.Name = "local"
			if diff := cmp.Diff(tc.want, namespace(ci).Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInjectAccess(t *testing.T) {
	for name, text := range map[string]string{
		"another kind":         "kind: ConfigMap\nspec: {template: {spec: {containers: [{name: a}]}}}",
		"forbidden by a label": "kind: Deployment\nmetadata: {labels: {extensions.gardener.cloud/inject-garden-kubeconfig: \"false\"}}\nspec: {template: {spec: {containers: [{name: a}]}}}",
		"no pods":              "kind: Deployment\nspec: {replicas: 1}",
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, text)
			if err := injectAccess(object, "k", "s"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, text).Object, object.Object); diff != "" {
				t.Errorf("the object was changed (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("pods of a CronJob", func(t *testing.T) {
		object := parse(t, `
kind: CronJob
spec: {jobTemplate: {spec: {template: {spec: {initContainers: [{name: i}], containers: [{name: own, env: [{name: GARDEN_KUBECONFIG, value: custom}]}]}}}}}`)
		if err := injectAccess(object, "k", "s"); err != nil {
			t.Fatal(err)
		}
		want := parse(t, `
kind: CronJob
spec:
  jobTemplate:
    spec:
      template:
        spec:
          initContainers:
          - name: i
            resources: {}
            env:
            - {name: GARDEN_KUBECONFIG, value: /var/run/secrets/gardener.cloud/garden/generic-kubeconfig/kubeconfig}
            - {name: SEED_NAME, value: s}
            volumeMounts:
            - {name: garden-kubeconfig, mountPath: /var/run/secrets/gardener.cloud/garden/generic-kubeconfig, readOnly: true}
          containers:
          - name: own
            resources: {}
            env: [{name: GARDEN_KUBECONFIG, value: custom}]
          volumes:
          - name: garden-kubeconfig
            projected:
              sources:
              - secret: {name: k, items: [{key: kubeconfig, path: kubeconfig}], optional: false}
              - secret: {name: garden-access-extension, items: [{key: token, path: token}], optional: false}
`)
		if diff := cmp.Diff(want.Object, object.Object); diff != "" {
			t.Errorf("injectAccess() (-want +got):\n%s", diff)
		}
	})
	t.Run("an invalid pod spec", func(t *testing.T) {
		if err := injectAccess(parse(t, "kind: Pod\nmetadata: {name: a}\nspec: {containers: 3}"), "k", "s"); err == nil {
			t.Error("injectAccess() returned no error")
		}
	})
}
