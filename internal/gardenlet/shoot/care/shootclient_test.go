package care

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func TestReachNode(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`
	for name, tc := range map[string]struct {
		code    int
		body    string
		reached bool
	}{
		"a healthy kubelet":                  {http.StatusOK, "ok", true},
		"an unhealthy kubelet":               {http.StatusInternalServerError, "syncloop", true},
		"a kubelet without such a path":      {http.StatusNotFound, "not found", true},
		"a kubelet that forbids it":          {http.StatusForbidden, "no", true},
		"no tunnel":                          {http.StatusServiceUnavailable, "error trying to reach service", false},
		"a broken tunnel":                    {http.StatusBadGateway, "EOF", false},
		"the API server has an error itself": {http.StatusInternalServerError, status, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tc.body == status {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			client, err := rest.UnversionedRESTClientFor(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{
				GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: clientgoscheme.Codecs.WithoutConversion(),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := (&shootClient{rest: client}).ReachNode(t.Context(), "n"); (err == nil) != tc.reached {
				t.Errorf("error is %v", err)
			}
		})
	}
}
