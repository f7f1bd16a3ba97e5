package gardenlet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart/charttest"
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
			RawChart: charttest.Pack(t, "Chart.yaml", "apiVersion: v2\nname: tiny\nversion: 1.0.0\n", "values.yaml", "color: red\n", "templates/a.yaml", template),
			Values:   &apiextensionsv1.JSON{Raw: []byte(`{"color":"{{ .resources.paint.data.color }}"}`)},
		},
		Resources: []gardencorev1.NamedResourceReference{{
			Name: "paint", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "paint"},
		}},
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
		ObjectMeta: metav1.ObjectMeta{Name: "tiny-x", Annotations: map[string]string{constants.PodSecurityEnforce: "baseline"}},
		Spec: corev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: "tiny"}, SeedRef: &corev1.ObjectReference{Name: seedName}, DeploymentRef: &corev1.ObjectReference{Name: "tiny"},
		},
	}
	paint := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "paint"}, StringData: map[string]string{"color": "blue"}}
	for _, object := range []client.Object{paint, deployment, registration, installation} {
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

	namespace := &corev1.Namespace{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Name: "extension-tiny-x"}, namespace); err != nil {
		t.Fatal(err)
	}
	if got := namespace.Labels["pod-security.kubernetes.io/enforce"]; got != "baseline" {
		t.Errorf("the namespace has pod security level %q", got)
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

	// Without the field, the access to the garden is revoked. The version in the reference is what gardener-controller-manager would write.
	access := func() error {
		for _, object := range []client.Object{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "extension-tiny-x", Name: "garden-access-extension"}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + seedName, Name: "extension-tiny-x"}},
		} {
			if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
		}
		return nil
	}
	inject := func(on bool) {
		env.Edit(t, g.c, deployment, func(d *gardencorev1.ControllerDeployment) { d.InjectGardenKubeconfig = &on })
		env.Edit(t, g.c, installation, func(i *corev1beta1.ControllerInstallation) {
			i.Spec.DeploymentRef.ResourceVersion = deployment.ResourceVersion
		})
	}
	inject(false)
	env.AwaitList(t, g.c, func(found []*corev1.ServiceAccount) error {
		if len(found) > 0 {
			return fmt.Errorf("ServiceAccount %q still exists", found[0].Name)
		}
		return nil
	}, client.InNamespace("seed-"+seedName), client.MatchingFields{"metadata.name": "extension-tiny-x"})
	if err := access(); !apierrors.IsNotFound(err) {
		t.Errorf("access to the garden: %v", err)
	}
	inject(true)
	env.AwaitList(t, g.c, func(found []*corev1.ServiceAccount) error {
		if len(found) == 0 {
			return errors.New("there is no ServiceAccount")
		}
		return nil
	}, client.InNamespace("seed-"+seedName), client.MatchingFields{"metadata.name": "extension-tiny-x"})

	// With the ControllerInstallation, all its objects are deleted. It waits for its namespace, which the test finalizes in place of kube-controller-manager.
	if err := g.c.Delete(t.Context(), installation); err != nil {
		t.Fatal(err)
	}
	namespace = env.Await(t, g.c, namespace, func(n *corev1.Namespace) error {
		if n.DeletionTimestamp == nil {
			return errors.New("it is not deleted")
		}
		return nil
	})
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(installation), installation); err != nil {
		t.Errorf("ControllerInstallation while its namespace exists: %v", err)
	}
	namespace.Spec.Finalizers = nil
	if err := g.c.SubResource("finalize").Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	env.AwaitList(t, g.c, env.None[*corev1beta1.ControllerInstallation])
	if err := g.c.Get(t.Context(), key, mr); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedResource: %v", err)
	}
	if err := access(); !apierrors.IsNotFound(err) {
		t.Errorf("access to the garden: %v", err)
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

// addKinds registers the API groups of a seed, for the client of the tests.
func addKinds(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{resourcesv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, apiextensionsv1.AddToScheme, gatewayv1.Install} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	return nil
}
