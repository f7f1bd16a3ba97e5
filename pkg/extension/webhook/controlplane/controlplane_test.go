package controlplane

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const namespace = "shoot--dev--crazy"

// request is what a kube-apiserver sends.
func request(operation admissionv1.Operation, kind, name, object string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Kind: metav1.GroupVersionKind{Kind: kind}, Namespace: namespace, Name: name, Object: runtime.RawExtension{Raw: []byte(object)},
	}}
}

// changed returns the object with the patch of a response.
func changed(t *testing.T, r admission.Request, response admission.Response) map[string]any {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("refused: %s", response.Result.Message)
	}
	raw := r.Object.Raw
	if len(response.Patches) > 0 {
		encoded, err := json.Marshal(response.Patches)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const deployed = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shoot--dev--crazy","name":"machine-controller-manager"},
	"spec":{"ofALaterVersion":{"a":1},"template":{"spec":{"containers":[{"name":"machine-controller-manager","command":["./machine-controller-manager","--v=3"]}]}}}}`

func TestHandle(t *testing.T) {
	sidecar := Ensurer{MachineControllerManager: func(_ context.Context, shoot Shoot, d *appsv1.Deployment) error {
		SetContainer(&d.Spec.Template.Spec, corev1.Container{Name: "driver", Args: []string{"--namespace=" + shoot.Namespace}})
		return nil
	}}
	for name, tc := range map[string]struct {
		ensurer Ensurer
		request admission.Request
		// containers are those afterwards; nil means that nothing changes.
		containers []string
		refused    string
	}{
		"a container is added": {ensurer: sidecar, request: request(admissionv1.Create, "Deployment", "machine-controller-manager", deployed), containers: []string{"machine-controller-manager", "driver"}},
		"another Deployment":   {ensurer: sidecar, request: request(admissionv1.Create, "Deployment", "kube-scheduler", deployed)},
		"another kind":         {ensurer: sidecar, request: request(admissionv1.Update, "VerticalPodAutoscaler", "machine-controller-manager-vpa", deployed)},
		"a deletion":           {ensurer: sidecar, request: request(admissionv1.Delete, "Deployment", "machine-controller-manager", "")},
		"it is being deleted": {ensurer: sidecar, request: request(admissionv1.Update, "Deployment", "machine-controller-manager",
			strings.Replace(deployed, `"metadata":{`, `"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",`, 1))},
		"an error": {
			ensurer: Ensurer{MachineControllerManager: func(context.Context, Shoot, *appsv1.Deployment) error { return errors.New("no image") }},
			request: request(admissionv1.Update, "Deployment", "machine-controller-manager", deployed), refused: "no image",
		},
		"no Cluster": {
			ensurer: Ensurer{MachineControllerManager: func(ctx context.Context, shoot Shoot, _ *appsv1.Deployment) error {
				_, err := shoot.Cluster(ctx)
				return err
			}},
			request: request(admissionv1.Update, "Deployment", "machine-controller-manager", deployed), refused: `there is no Cluster "shoot--dev--crazy"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := extensionsv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			response := (&handler{ensurer: tc.ensurer, reader: fake.NewClientBuilder().WithScheme(scheme).Build()}).Handle(t.Context(), tc.request)
			if tc.refused != "" {
				if response.Allowed || response.Result.Message != tc.refused {
					t.Fatalf("response is %+v", response)
				}
				return
			}
			if tc.containers == nil {
				if !response.Allowed || len(response.Patches) > 0 {
					t.Errorf("response is %+v", response)
				}
				return
			}
			object := changed(t, tc.request, response)
			var names []string
			containers, _, _ := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
			for _, container := range containers {
				names = append(names, container.(map[string]any)["name"].(string)) //nolint:forcetypeassert // as above
			}
			if diff := cmp.Diff(tc.containers, names); diff != "" {
				t.Errorf("containers (-want +got):\n%s", diff)
			}
			if later, _, _ := unstructured.NestedMap(object, "spec", "ofALaterVersion"); later == nil {
				t.Error("a field that the extension does not have is lost")
			}
		})
	}
}

func TestRules(t *testing.T) {
	deployment := func(context.Context, Shoot, *appsv1.Deployment) error { return nil }
	for name, tc := range map[string]struct {
		ensurer Ensurer
		want    []string
	}{
		"nothing":         {},
		"one Deployment":  {Ensurer{KubeScheduler: deployment}, []string{"deployments"}},
		"two Deployments": {Ensurer{KubeScheduler: deployment, VPNSeedServer: deployment}, []string{"deployments"}},
		"everything": {Ensurer{
			KubeAPIServer:                      deployment,
			MachineControllerManagerAutoscaler: func(context.Context, Shoot, *unstructured.Unstructured) error { return nil },
			KernelSettings:                     func(context.Context, Shoot, map[string]string) error { return nil },
		}, []string{"deployments", "verticalpodautoscalers", "operatingsystemconfigs"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, rule := range tc.ensurer.rules() {
				got = append(got, rule.Resources...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rules() (-want +got):\n%s", diff)
			}
		})
	}
}

// The extension may not respond while control planes are deleted: no request of a deletion needs it.
func TestConditions(t *testing.T) {
	environment, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	object := func(spec string, metadata map[string]any) map[string]any {
		return map[string]any{"metadata": metadata, "spec": map[string]any{"purpose": spec}}
	}
	confirmed := map[string]any{"annotations": map[string]any{"confirmation.gardener.cloud/deletion": "true", "gardener.cloud/timestamp": "2"}}
	former := object("a", map[string]any{"annotations": map[string]any{"gardener.cloud/timestamp": "1"}})
	for name, tc := range map[string]struct {
		old, object any
		want        bool
	}{
		"created":                              {nil, object("a", map[string]any{}), true},
		"its spec is changed":                  {former, object("b", map[string]any{}), true},
		"nothing is changed":                   {former, former, true},
		"reconciliation is requested":          {former, object("a", map[string]any{"annotations": map[string]any{"gardener.cloud/operation": "reconcile"}}), true},
		"its deletion is confirmed":            {former, object("a", confirmed), false},
		"it stays, as its deletion has failed": {object("a", confirmed), object("b", confirmed), true},
		"a finalizer is removed":               {former, object("a", map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}), false},
		"its spec is changed while it is deleted": {
			former, object("b", map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			called := true
			for _, condition := range conditions {
				parsed, issues := environment.Compile(condition.Expression)
				if issues.Err() != nil {
					t.Fatal(issues.Err())
				}
				program, err := environment.Program(parsed)
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := program.Eval(map[string]any{"object": tc.object, "oldObject": tc.old})
				if err != nil {
					t.Fatalf("%s: %v", condition.Name, err)
				}
				called = called && got.Value() == true
			}
			if called != tc.want {
				t.Errorf("the webhook is called: %t", called)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	list := []string{"kube-controller-manager", "--cloud-provider=none", "--feature-gates=A=true", "--v=2"}
	for name, tc := range map[string]struct{ got, want []string }{
		"set an existing one":          {SetFlag(list, "cloud-provider", "external"), []string{"kube-controller-manager", "--cloud-provider=external", "--feature-gates=A=true", "--v=2"}},
		"set a new one":                {SetFlag(list[:2], "v", "3"), []string{"kube-controller-manager", "--cloud-provider=none", "--v=3"}},
		"the name is whole":            {SetFlag([]string{"--cloud-provider-x=1"}, "cloud-provider", "y"), []string{"--cloud-provider-x=1", "--cloud-provider=y"}},
		"remove":                       {RemoveFlag(list, "v"), list[:3]},
		"remove one that is not there": {RemoveFlag(list, "x"), list},
		"add an element":               {AddToFlag(list[2:3], "feature-gates", "B=true"), []string{"--feature-gates=A=true,B=true"}},
		"an element that is there":     {AddToFlag(list[2:3], "feature-gates", "A=true"), list[2:3]},
		"the first element":            {AddToFlag(nil, "enable-admission-plugins", "X"), []string{"--enable-admission-plugins=X"}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if list[1] != "--cloud-provider=none" {
		t.Error("the given list was changed")
	}
}

func TestMachineController(t *testing.T) {
	vpa := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resourcePolicy": map[string]any{"containerPolicies": []any{
		map[string]any{"containerName": "machine-controller-manager"}, map[string]any{"containerName": "*", "mode": "Off"},
	}}}}}
	container := MachineController("provider-example", "registry.example/driver:v1", namespace)
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "machine-controller-manager"}}}
	for range 2 { // the same again
		SetContainer(spec, container)
		if err := SetPolicy(vpa, container); err != nil {
			t.Fatal(err)
		}
	}
	if len(spec.Containers) != 2 || spec.Containers[1].Name != "machine-controller-manager-provider-example" {
		t.Errorf("containers are %v", spec.Containers)
	}
	policies, _, _ := unstructured.NestedSlice(vpa.Object, "spec", "resourcePolicy", "containerPolicies")
	want := []any{
		map[string]any{"containerName": "machine-controller-manager"},
		map[string]any{"containerName": "machine-controller-manager-provider-example", "controlledValues": "RequestsOnly", "minAllowed": map[string]any{"cpu": "5m", "memory": "30Mi"}},
		map[string]any{"containerName": "*", "mode": "Off"},
	}
	if diff := cmp.Diff(want, policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

func TestNodes(t *testing.T) {
	const unitContent = "[Unit]\nDescription=kubelet\n[Service]\nExecStart=/opt/bin/kubelet \\\n    --config=/var/lib/kubelet/config/kubelet \\\n    --v=2 $KUBELET_EXTRA_ARGS\n"
	config := base64.StdEncoding.EncodeToString([]byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110\n"))
	osc := func(purpose extensionsv1alpha1.OperatingSystemConfigPurpose) *extensionsv1alpha1.OperatingSystemConfig {
		return &extensionsv1alpha1.OperatingSystemConfig{Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
			Purpose: purpose, Units: []extensionsv1alpha1.Unit{{Name: "kubelet.service", Content: new(unitContent)}},
			Files: []extensionsv1alpha1.File{
				{Path: kubeletConfig, Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: config}}},
				{Path: kernelSettings, Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: "# a comment\nvm.max_map_count = 1\nnet.core.x=2\n"}}},
			},
		}}
	}
	ensurer := Ensurer{
		KubeletFlags: func(_ context.Context, _ Shoot, flags []string) ([]string, error) {
			return SetFlag(flags, "cloud-provider", "external"), nil
		},
		KubeletConfiguration: func(_ context.Context, _ Shoot, c *KubeletConfiguration) error {
			c.FailSwapOn = new(false)
			return nil
		},
		KernelSettings: func(_ context.Context, _ Shoot, s map[string]string) error {
			s["vm.max_map_count"] = "262144"
			return nil
		},
		OperatingSystemConfig: func(_ context.Context, _ Shoot, osc *extensionsv1alpha1.OperatingSystemConfig) error {
			SetUnit(osc, extensionsv1alpha1.Unit{Name: "x.service"})
			SetFile(osc, extensionsv1alpha1.File{Path: "/x"})
			return nil
		},
	}
	of := osc(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile)
	for range 2 {
		if err := ensurer.operatingSystemConfig(t.Context(), Shoot{}, of); err != nil {
			t.Fatal(err)
		}
	}
	if len(of.Spec.Units) != 2 || len(of.Spec.Files) != 3 {
		t.Errorf("there are %d units and %d files", len(of.Spec.Units), len(of.Spec.Files))
	}
	wantUnit := "ExecStart=/opt/bin/kubelet \\\n    --config=/var/lib/kubelet/config/kubelet \\\n    --v=2 \\\n    --cloud-provider=external \\\n    $KUBELET_EXTRA_ARGS\n"
	if got := *of.Spec.Units[0].Content; !strings.Contains(got, wantUnit) {
		t.Errorf("the unit is\n%s", got)
	}
	decoded, err := base64.StdEncoding.DecodeString(of.Spec.Files[0].Content.Inline.Data)
	if err != nil || !strings.Contains(string(decoded), "failSwapOn: false\n") || !strings.Contains(string(decoded), "maxPods: 110\n") {
		t.Errorf("the configuration of the kubelet is %s (%v)", decoded, err)
	}
	if diff := cmp.Diff("net.core.x = 2\nvm.max_map_count = 262144\n", of.Spec.Files[1].Content.Inline.Data); diff != "" {
		t.Errorf("settings of the kernel (-want +got):\n%s", diff)
	}

	provision := osc(extensionsv1alpha1.OperatingSystemConfigPurposeProvision)
	if err := ensurer.operatingSystemConfig(t.Context(), Shoot{}, provision); err != nil {
		t.Fatal(err)
	}
	if *provision.Spec.Units[0].Content != unitContent || len(provision.Spec.Units) != 2 {
		t.Error("the kubelet of a new machine is changed before it is configured")
	}
}
