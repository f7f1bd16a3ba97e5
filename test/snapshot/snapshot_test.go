package snapshot

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// serve responds as an API server with namespaces, config maps and pods.
func serve(t *testing.T) *rest.Config {
	t.Helper()
	answers := map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
			`{"name":"namespaces","kind":"Namespace","verbs":["list"]},{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]},` +
			`{"name":"bindings","kind":"Binding","namespaced":true,"verbs":["create"]},{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1/namespaces": `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[` +
			`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}},{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"other"}}]}`,
		"/api/v1/configmaps": `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[` +
			`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","namespace":"a"}},{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","namespace":"other"}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			t.Errorf("unexpected request of %s", r.URL.Path)
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestTake(t *testing.T) {
	got, err := Take(t.Context(), serve(t), "other")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"configmaps. a x", "namespaces.  a"}, got); diff != "" {
		t.Errorf("Take() (-want +got):\n%s", diff)
	}
}

func TestAwait(t *testing.T) {
	config := serve(t)
	if err := Await(t.Context(), config, []string{"configmaps. a x", "namespaces.  a"}, "other"); err != nil {
		t.Errorf("as before: %v", err)
	}
}

func TestDifference(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now []string
		want        string
	}{
		"the same": {before: []string{"a", "b"}, now: []string{"a", "b"}},
		"more and less": {
			before: []string{"a", "b"}, now: []string{"b", "c"}, want: "the cluster is not as before:\n  left over: c\n  missing:   a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := difference(tc.before, tc.now); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("difference() (-want +got):\n%s", diff)
			}
		})
	}
}
