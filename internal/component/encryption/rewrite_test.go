package encryption

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// startingServer is a kube-apiserver that has just started: it serves two versions of the group of Gardener, and a custom resource, but lists only the first
// version so far.
func startingServer(t *testing.T, patched *[]string) client.Client {
	t.Helper()
	served := func(version, kind, resource string) apidiscoveryv2.APIVersionDiscovery {
		return apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: []apidiscoveryv2.APIResourceDiscovery{{
			Resource: resource, ResponseKind: &metav1.GroupVersionKind{Kind: kind}, Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"list", "patch"},
		}}}
	}
	group := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: corev1beta1.GroupName}, Versions: []apidiscoveryv2.APIVersionDiscovery{
		served("v1", "ControllerDeployment", "controllerdeployments"), {Version: "v1beta1", Freshness: apidiscoveryv2.DiscoveryFreshnessStale},
	}}
	resources := func(version, kind, resource string) *metav1.APIResourceList {
		return &metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version,
			APIResources: []metav1.APIResource{{Name: resource, Kind: kind, Namespaced: true, Verbs: []string{"list", "patch"}}},
		}
	}
	objects := func(kind string) *metav1.PartialObjectMetadataList {
		return &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: metav1.SchemeGroupVersion.String()},
			Items: []metav1.PartialObjectMetadata{{
				TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()},
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: kind},
			}},
		}
	}
	discovery := func(groups ...apidiscoveryv2.APIGroupDiscovery) *apidiscoveryv2.APIGroupDiscoveryList {
		return &apidiscoveryv2.APIGroupDiscoveryList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()}, Items: groups,
		}
	}
	answers := map[string]any{
		"/api":                              discovery(apidiscoveryv2.APIGroupDiscovery{Versions: []apidiscoveryv2.APIVersionDiscovery{served("v1", "Secret", "secrets")}}),
		"/apis":                             discovery(group),
		"/apis/core.gardener.cloud/v1beta1": resources("core.gardener.cloud/v1beta1", "ShootState", "shootstates"),
		"/apis/core.gardener.cloud/v1beta1/shootstates": objects("ShootState"),
		"/api/v1/secrets":             objects("Secret"),
		"/apis/example.com/v1":        resources("example.com/v1", "Wheel", "wheels"),
		"/apis/example.com/v1/wheels": objects("Wheel"),
		"/apis/apiextensions.k8s.io/v1": &metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "apiextensions.k8s.io/v1",
			APIResources: []metav1.APIResource{{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition", Verbs: []string{"get"}}},
		},
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/wheels.example.com": &apiextensionsv1.CustomResourceDefinition{
			TypeMeta: metav1.TypeMeta{Kind: "CustomResourceDefinition", APIVersion: "apiextensions.k8s.io/v1"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Wheel", Plural: "wheels"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1"}, {Name: "v1", Served: true, Storage: true}},
			},
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if list, ok := answers[r.URL.Path].(*apidiscoveryv2.APIGroupDiscoveryList); ok {
			w.Header().Set("Content-Type", "application/json;g="+apidiscoveryv2.GroupName+";v=v2;as=APIGroupDiscoveryList")
			_ = json.NewEncoder(w).Encode(list)
			return
		}
		if r.Method == http.MethodPatch {
			*patched = append(*patched, r.URL.Path)
			_ = json.NewEncoder(w).Encode(&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}})
			return
		}
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path).Status()
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRewrite(t *testing.T) {
	for name, tt := range map[string]struct {
		resource schema.GroupResource
		want     []string
		noMatch  bool
	}{
		"listed":                                 {resource: schema.GroupResource{Resource: "secrets"}, want: []string{"/api/v1/namespaces/n/secrets/Secret"}},
		"in a version that is not listed yet":    {resource: corev1beta1.Resource("shootstates"), want: []string{"/apis/core.gardener.cloud/v1beta1/namespaces/n/shootstates/ShootState"}},
		"custom resource that is not listed":     {resource: schema.GroupResource{Group: "example.com", Resource: "wheels"}, want: []string{"/apis/example.com/v1/namespaces/n/wheels/Wheel"}},
		"not served, but in a group that is":     {resource: corev1beta1.Resource("wheels"), noMatch: true},
		"not served, in a group that is not":     {resource: schema.GroupResource{Group: "example.org", Resource: "wheels"}, noMatch: true},
		"known, but in no version that is there": {resource: corev1beta1.Resource("quotas"), noMatch: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var patched []string
			err := Rewrite(ctx, startingServer(t, &patched), tt.resource)
			if meta.IsNoMatchError(err) != tt.noMatch || (err != nil && !tt.noMatch) {
				t.Errorf("Rewrite() = %v, want NoMatch %t", err, tt.noMatch)
			}
			if diff := cmp.Diff(tt.want, patched); diff != "" {
				t.Errorf("patched (-want +got):\n%s", diff)
			}
		})
	}
}
