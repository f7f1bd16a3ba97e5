package gardenadmission

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/extension/webhook"
)

var path = field.NewPath("spec", "providerConfig")

// request is one for a CloudProfile.
func request(t *testing.T, operation admissionv1.Operation, change func(*corev1beta1.CloudProfile), old *corev1beta1.CloudProfile) admission.Request {
	t.Helper()
	encode := func(profile *corev1beta1.CloudProfile) runtime.RawExtension {
		raw, err := json.Marshal(profile)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	profile := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1beta1.CloudProfileSpec{Type: "example"}}
	if change != nil {
		change(profile)
	}
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Name: "p", Kind: metav1.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "CloudProfile"}, Object: encode(profile),
	}}
	if old != nil {
		r.OldObject = encode(old)
	}
	return r
}

func TestValidator(t *testing.T) {
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		operation admissionv1.Operation
		change    func(*corev1beta1.CloudProfile)
		old       *corev1beta1.CloudProfile
		err       error
		code      int32
		hasOld    bool
	}{
		"valid":                      {operation: admissionv1.Create, code: 200},
		"updated":                    {operation: admissionv1.Update, old: &corev1beta1.CloudProfile{}, hasOld: true, code: 200},
		"errors of fields":           {operation: admissionv1.Create, err: field.ErrorList{field.Required(path, "r"), field.Invalid(path, 1, "i")}.ToAggregate(), code: 422},
		"one error of a field":       {operation: admissionv1.Create, err: field.Forbidden(path, "f"), code: 422},
		"error of the API":           {operation: admissionv1.Create, err: apierrors.NewForbidden(schema.GroupResource{}, "p", errors.New("x")), code: 403},
		"something else fails":       {operation: admissionv1.Create, err: errors.New("no connection"), code: 500},
		"deleted is not checked":     {operation: admissionv1.Update, change: func(p *corev1beta1.CloudProfile) { p.DeletionTimestamp = &deleted }, err: errors.New("x"), code: 200},
		"an object that is no valid": {operation: "", code: 400},
	} {
		t.Run(name, func(t *testing.T) {
			w := Validator("profiles", CloudProfiles("example"), func(_ context.Context, _, old *corev1beta1.CloudProfile) error {
				if (old != nil) != tc.hasOld {
					t.Errorf("old object is %v", old)
				}
				return tc.err
			})
			r := request(t, tc.operation, tc.change, tc.old)
			if tc.operation == "" {
				r.Object.Raw = []byte("x")
			}
			response := w.Handler.Handle(t.Context(), r)
			if response.Allowed != (tc.code == 200) || response.Result.Code != tc.code {
				t.Errorf("response is %+v", response)
			}
			if tc.code == 422 && !strings.Contains(response.Result.Message, "spec.providerConfig") {
				t.Errorf("message is %q", response.Result.Message)
			}
		})
	}
}

func TestMutator(t *testing.T) {
	w := Mutator("profiles", CloudProfiles("example"), func(_ context.Context, profile, _ *corev1beta1.CloudProfile) error {
		if profile.Spec.CABundle != nil {
			return field.Forbidden(field.NewPath("spec", "caBundle"), "x")
		}
		profile.Spec.Regions = []corev1beta1.Region{{Name: "here"}}
		return nil
	})
	response := w.Handler.Handle(t.Context(), request(t, admissionv1.Create, nil, nil))
	if !response.Allowed || len(response.Patches) != 1 || response.Patches[0].Path != "/spec/regions" {
		t.Errorf("response is %+v", response)
	}
	response = w.Handler.Handle(t.Context(), request(t, admissionv1.Create, func(p *corev1beta1.CloudProfile) { p.Spec.CABundle = new("x") }, nil))
	if response.Allowed || response.Result.Code != 422 {
		t.Errorf("response is %+v", response)
	}
}

// Shoots may still use a profile that is being deleted, and its status is written as that of its parent.
func TestMutatorOfDeleted(t *testing.T) {
	rename := func(_ context.Context, profile, _ *corev1beta1.CloudProfile) error {
		profile.Spec.Type = "other"
		return nil
	}
	r := request(t, admissionv1.Update, func(p *corev1beta1.CloudProfile) { p.DeletionTimestamp = new(metav1.Now()) }, &corev1beta1.CloudProfile{})
	for subresource, want := range map[string]int{"": 0, "status": 1} {
		r.SubResource = subresource
		response := Mutator("profiles", CloudProfiles("example"), rename).Handler.Handle(t.Context(), r)
		if !response.Allowed || len(response.Patches) != want {
			t.Errorf("subresource %q: response is %+v", subresource, response)
		}
	}
}

// Requests that are left out do not depend on the process. Selections do not change each other.
func TestWhen(t *testing.T) {
	shoots := Shoots("x").When("spec", SpecChanged)
	validator := Validator("v", shoots, func(context.Context, *corev1beta1.Shoot, *corev1beta1.Shoot) error { return nil })
	mutator := Mutator("m", shoots.When("more", "true"), func(context.Context, *corev1beta1.Shoot, *corev1beta1.Shoot) error { return nil })
	names := func(w webhook.Webhook) (list []string) {
		for _, condition := range w.MatchConditions {
			list = append(list, condition.Name)
		}
		return list
	}
	if diff := cmp.Diff([][]string{{"spec", "not-deleted"}, {"spec", "more"}, {"spec"}}, [][]string{
		names(validator), names(mutator), names(shoots.webhook("", true, nil)),
	}); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestSelectors has the rules and the labels of all kinds.
func TestSelectors(t *testing.T) {
	describe := func(w webhook.Webhook) string {
		if len(w.MatchConditions) > 0 {
			t.Errorf("it has conditions %v", w.MatchConditions)
		}
		rule := w.Rules[0]
		for key, value := range w.ObjectSelector.MatchLabels {
			return strings.Join(append(rule.APIGroups, append(rule.APIVersions, rule.Resources...)...), "/") + " " + key + "=" + value
		}
		return ""
	}
	got := []string{
		describe(Shoots("x").webhook("", true, nil)), describe(ShootsWithExtension("x").webhook("", true, nil)), describe(CloudProfiles("x").webhook("", true, nil)),
		describe(NamespacedCloudProfiles("x").webhook("", true, nil)), describe(NamespacedCloudProfileStatuses("x").webhook("", true, nil)),
		describe(ShootsWithNetworking("x").webhook("", true, nil)), describe(ShootsWithContainerRuntime("x").webhook("", true, nil)),
		describe(ShootsWithOperatingSystem("x").webhook("", true, nil)), describe(CredentialsBindings("x").webhook("", true, nil)),
		describe(SecretBindings("x").webhook("", true, nil)),
		describe(Seeds("x").webhook("", true, nil)), describe(BackupBuckets("x").webhook("", true, nil)), describe(Credentials("x").webhook("", true, nil)),
	}
	const core = "core.gardener.cloud/v1beta1/"
	if diff := cmp.Diff([]string{
		core + "shoots provider.extensions.gardener.cloud/x=true", core + "shoots extensions.extensions.gardener.cloud/x=true",
		core + "cloudprofiles provider.extensions.gardener.cloud/x=true", core + "namespacedcloudprofiles provider.extensions.gardener.cloud/x=true",
		core + "namespacedcloudprofiles/status provider.extensions.gardener.cloud/x=true",
		core + "shoots networking.extensions.gardener.cloud/x=true", core + "shoots containerruntime.extensions.gardener.cloud/x=true",
		core + "shoots operatingsystemconfig.extensions.gardener.cloud/x=true",
		"security.gardener.cloud/v1alpha1/credentialsbindings provider.extensions.gardener.cloud/x=true",
		core + "secretbindings provider.extensions.gardener.cloud/x=true", core + "seeds provider.extensions.gardener.cloud/x=true",
		core + "backupbuckets provider.extensions.gardener.cloud/x=true", "/v1/secrets provider.shoot.gardener.cloud/x=true",
	}, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestDecode(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := providerlocalconfigv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		"":                                 "spec.providerConfig: Required value",
		"x":                                "spec.providerConfig: Invalid value",
		`{"kind":"Other"}`:                 "spec.providerConfig: Invalid value",
		"{" + gvk(t, scheme) + "}":         "",
		"{" + gvk(t, scheme) + `,"dsn":1}`: `unknown field "dsn"`,
	} {
		config := &providerlocalconfigv1alpha1.ProviderLocalConfiguration{}
		err := Decode(NewDecoder(scheme), &runtime.RawExtension{Raw: []byte(raw)}, config, path).ToAggregate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// gvk returns the apiVersion and the kind of a configuration as JSON.
func gvk(t *testing.T, scheme *runtime.Scheme) string {
	t.Helper()
	kinds, _, err := scheme.ObjectKinds(&providerlocalconfigv1alpha1.ProviderLocalConfiguration{})
	if err != nil {
		t.Fatal(err)
	}
	return `"apiVersion":"` + kinds[0].GroupVersion().String() + `","kind":"` + kinds[0].Kind + `"`
}

// A SecretBinding that gets its provider is checked like a new one. No other change is: its other fields are immutable.
func TestProviderSet(t *testing.T) {
	binding := func(provider string) map[string]any {
		object := map[string]any{"metadata": map[string]any{"name": "a"}}
		if provider != "" {
			object["provider"] = map[string]any{"type": provider}
		}
		return object
	}
	environment, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	parsed, issues := environment.Compile(ProviderSet)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := environment.Program(parsed)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		old  any
		want bool
	}{
		"created": {nil, true}, "gets a provider": {binding(""), true}, "has had one": {binding("local"), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := program.Eval(map[string]any{"object": binding("local"), "oldObject": tc.old})
			if err != nil || got.Value() != tc.want {
				t.Errorf("the condition is %v (%v)", got, err)
			}
		})
	}
}
