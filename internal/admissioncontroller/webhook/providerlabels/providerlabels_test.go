package providerlabels

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/webhooktest"
)

func secretBinding(name, secret, types string) *corev1beta1.SecretBinding {
	b := &corev1beta1.SecretBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-other", Name: name}, SecretRef: corev1.SecretReference{Namespace: "garden-a", Name: secret},
	}
	if types != "" {
		b.Provider = &corev1beta1.SecretBindingProvider{Type: types}
	}
	return b
}

func credentialsBinding(name, apiVersion, kind, credentials, provider string) *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "garden-other", Name: name},
		CredentialsRef: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "garden-a", Name: credentials},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: provider},
	}
}

func TestHandle(t *testing.T) {
	const prefix = "provider.shoot.gardener.cloud/"
	cache := webhooktest.Garden(
		t, secretBinding("one", "by-secret-binding", "local"), secretBinding("two", "by-both", "local,other,not/a/label"), secretBinding("none", "untyped", ""),
		credentialsBinding("one", "v1", "Secret", "by-credentials-binding", "local"), credentialsBinding("two", "v1", "Secret", "by-both", "third"),
		credentialsBinding("internal", "core.gardener.cloud/v1beta1", "InternalSecret", "internal", "local"),
		credentialsBinding("identity", "security.gardener.cloud/v1alpha1", "WorkloadIdentity", "identity", "local"),
	).WithIndex(&corev1beta1.SecretBinding{}, index, credentials).WithIndex(&securityv1alpha1.CredentialsBinding{}, index, credentials).Build()
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "garden-a", Name: name, Labels: labels}
	}
	secret := func(name string, labels map[string]string) client.Object {
		return &corev1.Secret{ObjectMeta: meta(name, labels), Data: map[string][]byte{"a": []byte("b")}}
	}
	internal := func(name string, labels map[string]string) client.Object {
		return &corev1beta1.InternalSecret{ObjectMeta: meta(name, labels)}
	}
	local := map[string]string{prefix + "local": "true"}
	for name, tc := range map[string]struct {
		object client.Object
		want   map[string]string // nil if nothing changes
	}{
		"set":                                {secret("by-secret-binding", nil), local},
		"set by a CredentialsBinding":        {secret("by-credentials-binding", map[string]string{"a": "b"}), map[string]string{"a": "b", prefix + "local": "true"}},
		"set on an InternalSecret":           {internal("internal", nil), local},
		"right":                              {secret("by-secret-binding", local), nil},
		"stale":                              {secret("by-secret-binding", map[string]string{prefix + "old": "true", prefix + "local": "true"}), local},
		"wrong":                              {secret("by-secret-binding", map[string]string{prefix + "local": "false"}), local},
		"stale on an InternalSecret":         {internal("internal", map[string]string{prefix + "old": "true"}), local},
		"of all bindings":                    {secret("by-both", nil), map[string]string{prefix + "local": "true", prefix + "other": "true", prefix + "third": "true"}},
		"unreferenced":                       {secret("other", map[string]string{prefix + "old": "true"}), nil},
		"unreferenced InternalSecret":        {internal("by-secret-binding", map[string]string{prefix + "old": "true"}), nil},
		"Secret with an InternalSecret's":    {secret("internal", nil), nil},
		"Secret with a WorkloadIdentity's":   {secret("identity", nil), nil},
		"binding without a type":             {secret("untyped", map[string]string{prefix + "old": "true"}), nil},
		"name that is not known yet":         {secret("", nil), nil},
		"of the name in another namespace":   {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-other", Name: "by-secret-binding"}}, nil},
		"InternalSecret, right, other label": {internal("internal", map[string]string{"a": "b", prefix + "local": "true"}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			response := (&Handler{Cache: cache}).Handle(t.Context(), webhooktest.Create(t, "secrets", tc.object))
			if !response.Allowed {
				t.Fatalf("it is refused: %+v", response.Result)
			}
			if diff := cmp.Diff(tc.want, labels(t, tc.object, response.Patches)); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("errors", func(t *testing.T) {
		request := webhooktest.Update(t, "secrets", secret("by-both", nil), secret("by-both", nil))
		webhooktest.Expect(t, (&Handler{Cache: webhooktest.Unreachable(t)}).Handle(t.Context(), request), http.StatusInternalServerError, "unreachable")
		request.Object.Raw = []byte("{")
		webhooktest.Expect(t, (&Handler{Cache: cache}).Handle(t.Context(), request), http.StatusBadRequest)
	})
}

// labels returns the labels of an object that is patched, or nil without a patch. Nothing else may be patched.
func labels(t *testing.T, object client.Object, patches []jsonpatch.JsonPatchOperation) map[string]string {
	t.Helper()
	if len(patches) == 0 {
		return nil
	}
	labels := maps.Clone(object.GetLabels())
	for _, patch := range patches {
		label, one := strings.CutPrefix(patch.Path, "/metadata/labels/")
		label = strings.ReplaceAll(label, "~1", "/")
		switch value := patch.Value.(type) {
		case map[string]any:
			labels = map[string]string{}
			for label, v := range value {
				labels[label], _ = v.(string)
			}
		case string:
			labels[label] = value
		default:
			delete(labels, label)
		}
		if !one && patch.Path != "/metadata/labels" {
			t.Errorf("%s is patched", patch.Path)
		}
	}
	return labels
}
