package gardenlet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

const template = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: controller
  namespace: {{ .Release.Namespace }}
  labels:
    color: {{ .Values.color }}
    garden: {{ .Values.gardener.garden.clusterIdentity }}
    seed: {{ .Values.gardener.seed.name }}
    provider: {{ .Values.gardener.seed.spec.provider.type }}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i}]}
`

// testInstallation installs a tiny chart. The test writes the status of its ManagedResource in place of gardener-resource-manager.
func (g *garden) testInstallation(t *testing.T) {
	deployment := &gardencorev1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "tiny"},
		Helm: &gardencorev1.HelmControllerDeployment{
			RawChart: pack(t, "Chart.yaml", "apiVersion: v2\nname: tiny\nversion: 1.0.0\n", "values.yaml", "color: red\n", "templates/a.yaml", template),
			Values:   &apiextensionsv1.JSON{Raw: []byte(`{"color":"blue"}`)},
		},
		InjectGardenKubeconfig: new(true),
	}
	registration := &corev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "tiny"},
		Spec: corev1beta1.ControllerRegistrationSpec{
			Resources:  []corev1beta1.ControllerResource{{Kind: "Extension", Type: "tiny"}},
			Deployment: &corev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []corev1beta1.DeploymentRef{{Name: "tiny"}}},
		},
	}
	installation := &corev1beta1.ControllerInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: "tiny-x"},
		Spec: corev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: "tiny"}, SeedRef: &corev1.ObjectReference{Name: seedName}, DeploymentRef: &corev1.ObjectReference{Name: "tiny"},
		},
	}
	for _, object := range []client.Object{deployment, registration, installation} {
		if err := g.c.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T: %v", object, err)
		}
	}
	g.awaitConditions(t, "Valid=True", "Installed=False", "Healthy=False", "Progressing=True", "Required=False")
	mr, secret := &resourcesv1alpha1.ManagedResource{}, &corev1.Secret{}
	key := client.ObjectKey{Namespace: "garden", Name: "tiny-x"}
	if err := g.c.Get(t.Context(), key, mr); err != nil {
		t.Fatal(err)
	}
	if ptr.Deref(mr.Spec.Class, "") != "seed" || mr.Labels["controllerinstallation-name"] != "tiny-x" {
		t.Errorf("ManagedResource has class %v and labels %v", mr.Spec.Class, mr.Labels)
	}
	if err := g.c.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(brotli.NewReader(bytes.NewReader(secret.Data[resourcesv1alpha1.CompressedDataKey])))
	if err != nil {
		t.Fatal(err)
	}
	rendered := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(bytes.TrimPrefix(raw, []byte("---\n")), rendered); err != nil {
		t.Fatalf("%v in:\n%s", err, raw)
	}
	wantLabels := map[string]string{"color": "blue", "garden": gardenIdentity, "seed": seedName, "provider": "local"}
	if diff := cmp.Diff(wantLabels, rendered.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	container := rendered.Spec.Template.Spec.Containers[0]
	wantEnv := []corev1.EnvVar{
		{Name: "GARDEN_KUBECONFIG", Value: "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig/kubeconfig"}, {Name: "SEED_NAME", Value: seedName},
	}
	if diff := cmp.Diff(wantEnv, container.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	// The Secrets that the pods mount exist.
	for _, source := range rendered.Spec.Template.Spec.Volumes[0].Projected.Sources {
		if err := g.c.Get(t.Context(), client.ObjectKey{Namespace: "extension-tiny-x", Name: source.Secret.Name}, secret); err != nil {
			t.Error(err)
		}
	}
	// The extension gets a token of a ServiceAccount in the namespace of the seed.
	env.AwaitList(t, g.c, func(secrets []*corev1.Secret) error {
		if len(secrets) != 1 || len(secrets[0].Data["token"]) == 0 {
			return errors.New("the Secret has no token")
		}
		return nil
	}, client.InNamespace("extension-tiny-x"), client.MatchingFields{"metadata.name": "garden-access-extension"})
	account := &corev1.ServiceAccount{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Namespace: "seed-" + seedName, Name: "extension-tiny-x"}, account); err != nil {
		t.Error(err)
	}

	// gardener-resource-manager applies it.
	env.EditStatus(t, g.c, mr, func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Status.Conditions = nil
		for _, condition := range []corev1beta1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: corev1beta1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: corev1beta1.ConditionFalse},
		} {
			condition.LastTransitionTime, condition.LastUpdateTime = metav1.Now(), metav1.Now()
			mr.Status.Conditions = append(mr.Status.Conditions, condition)
		}
		mr.Status.ObservedGeneration = mr.Generation
	})
	// A resource requires the extension.
	extension := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}}
	extension.Spec.Type = "tiny"
	if err := g.c.Create(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	g.awaitConditions(t, "Valid=True", "Installed=True", "Healthy=True", "Progressing=False", "Required=True")
	if err := g.c.Delete(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	g.awaitConditions(t, "Required=False")

	// With the ControllerInstallation, all its objects are deleted.
	if err := g.c.Delete(t.Context(), installation); err != nil {
		t.Fatal(err)
	}
	env.AwaitList(t, g.c, env.None[*corev1beta1.ControllerInstallation])
	if err := g.c.Get(t.Context(), key, mr); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedResource: %v", err)
	}
}

// awaitConditions waits until the installation has conditions such as "Valid=True".
func (g *garden) awaitConditions(t *testing.T, want ...string) {
	t.Helper()
	env.Await(t, g.c, env.Named[*corev1beta1.ControllerInstallation]("", "tiny-x"), func(installation *corev1beta1.ControllerInstallation) error {
		got := map[string]bool{}
		for _, condition := range installation.Status.Conditions {
			got[string(condition.Type)+"="+string(condition.Status)] = true
		}
		for _, condition := range want {
			if !got[condition] {
				return fmt.Errorf("the conditions do not have %s", condition)
			}
		}
		return nil
	})
}

// pack returns a chart of files; names and contents alternate.
func pack(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for i := 0; i < len(files); i += 2 {
		if err := archive.WriteHeader(&tar.Header{Name: "tiny/" + files[i], Mode: 0o600, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// addKinds registers the API groups of a seed, for the client of the tests.
func addKinds(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{resourcesv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	return nil
}
