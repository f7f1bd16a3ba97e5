package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/gardenlet/shoot/credentials"
	"gardener.cloud/gardener/test/everyfield"
)

// render writes what the flow hands on, which is what extensions, nodes and components know of the Shoot.
func render(t *testing.T, handedOn ...any) string {
	t.Helper()
	data, err := yaml.Marshal(handedOn)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEveryFieldOfAPoolReachesExtensionsOrNodes(t *testing.T) {
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	set, err := credentials.Open(t.Context(), credentials.Values{Client: fake.NewFakeClient(), Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time)})
	if err != nil {
		t.Fatal(err)
	}
	everyfield.Run(t, everyfield.Suite[corev1beta1.Worker]{
		Base: func() *corev1beta1.Worker {
			return &corev1beta1.Worker{
				Name: "a", Machine: corev1beta1.Machine{Image: &corev1beta1.ShootMachineImage{}}, DataVolumes: []corev1beta1.DataVolume{{Name: "data", VolumeSize: "1Gi"}},
				Volume: &corev1beta1.Volume{VolumeSize: "1Gi"}, CRI: &corev1beta1.CRI{Name: corev1beta1.CRINameContainerD},
				Kubernetes: &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{
					ImagePullCredentialsVerificationPolicy: new(corev1beta1.NeverVerifyAllowlistedImages),
				}},
			}
		},
		Render: func(t *testing.T, worker *corev1beta1.Worker) string {
			w := example()
			w.shoot.Spec.Kubernetes.Version = "1.36.1"
			w.shoot.Spec.Networking = &corev1beta1.Networking{Services: new("100.64.0.0/13")}
			w.shoot.Spec.Provider.Workers = []corev1beta1.Worker{*worker}
			h := &hosted{world: w, set: set, reconciler: &reconciler{Values: Values{Images: images}}}
			v, pools, err := h.systemConfigValues()
			if err != nil {
				t.Fatal(err)
			}
			machines, err := operatingsystemconfig.Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			pools[0].provision = &extensionsv1alpha1.OperatingSystemConfig{Status: extensionsv1alpha1.OperatingSystemConfigStatus{
				CloudConfig: &extensionsv1alpha1.CloudConfig{},
			}}
			pool, err := h.workerPool(&pools[0])
			if err != nil {
				t.Fatal(err)
			}
			return render(t, machines, pool)
		},
		Values: map[string][2]any{
			"kubernetes.version": {"1.35.4", "1.36.1"}, "volume.size": {"7Gi", "8Gi"}, "dataVolumes[].size": {"7Gi", "8Gi"},
			"updateStrategy": {corev1beta1.AutoRollingUpdate, corev1beta1.AutoInPlaceUpdate},
		},
		Exceptions: map[string]string{
			"cri.containerRuntimes[].providerConfig": "for the ContainerRuntime, which no extension here fulfils",
			"controlPlane":                           "for self-hosted clusters, which gardenadm makes, and not this flow",
		},
	})
}

func TestEveryReferenceOfTheAPIServerIsRead(t *testing.T) {
	type references struct {
		Audit          corev1beta1.AuditPolicy              `json:"audit"`
		Authentication corev1beta1.StructuredAuthentication `json:"authentication"`
		Authorization  corev1beta1.StructuredAuthorization  `json:"authorization"`
		Plugin         corev1beta1.AdmissionPlugin          `json:"plugin"`
	}
	const other, component = "it is a ConfigMap of the project, and its name says which", "the component's"
	everyfield.Run(t, everyfield.Suite[references]{
		Base: func() *references {
			return &references{
				Audit:          corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "some"}},
				Authentication: corev1beta1.StructuredAuthentication{ConfigMapName: "some"},
				Authorization: corev1beta1.StructuredAuthorization{
					ConfigMapName: "some", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "some", SecretName: "some"}},
				},
				Plugin: corev1beta1.AdmissionPlugin{Name: "some", KubeconfigSecretName: new("some")},
			}
		},
		Render: func(t *testing.T, r *references) string {
			garden := fake.NewClientBuilder()
			for _, name := range []string{"some", "other"} {
				meta := metav1.ObjectMeta{Namespace: "garden-dev", Name: name}
				garden.WithObjects(
					&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{auditPolicyKey: name, configKey: name}},
					&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{kubeconfigKey: []byte(name)}},
				)
			}
			w := example()
			w.shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
				AuditConfig: &corev1beta1.AuditConfig{AuditPolicy: &r.Audit}, AdmissionPlugins: []corev1beta1.AdmissionPlugin{r.Plugin},
				StructuredAuthentication: &r.Authentication, StructuredAuthorization: &r.Authorization,
			}
			h := &hosted{world: w, reconciler: &reconciler{live: garden.Build()}}
			files, err := h.apiServerFiles(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return render(t, files)
		},
		Exceptions: map[string]string{
			"audit.configMapRef.kind": other, "audit.configMapRef.namespace": other, "audit.configMapRef.uid": other, "audit.configMapRef.apiVersion": other,
			"audit.configMapRef.resourceVersion": other, "audit.configMapRef.fieldPath": other,
			"plugin.config": component, "plugin.disabled": component,
		},
	})
}
