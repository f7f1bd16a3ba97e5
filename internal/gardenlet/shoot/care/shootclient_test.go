package care

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestRedirectOfANodeIsNotFollowed is about a node of a user that would lead the gardenlet to other addresses of its networks.
func TestRedirectOfANodeIsNotFollowed(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer target.Close()
	server := httptest.NewServer(http.RedirectHandler(target.URL+"/path?query", http.StatusFound))
	defer server.Close()
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"a": {Server: server.URL}}, Contexts: map[string]*clientcmdapi.Context{"a": {Cluster: "a"}}, CurrentContext: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := Connector(clientgoscheme.Scheme, "test", func(*rest.Config) {})(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ReachNode(t.Context(), "n"); err != nil {
		t.Errorf("the node, which responds, is not reached: %v", err)
	}
}

// TestAnswerOfANodeIsShort is about a node of a user that would fill the memory of the gardenlet.
func TestAnswerOfANodeIsShort(t *testing.T) {
	const far = 16 << 20
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"`)
		for chunk := strings.Repeat("1", 64<<10); sent.Load() < far; {
			n, err := io.WriteString(w, chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}}`)
	}))
	defer server.Close()
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"a": {Server: server.URL}}, Contexts: map[string]*clientcmdapi.Context{"a": {Cluster: "a"}}, CurrentContext: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := Connector(clientgoscheme.Scheme, "test", func(*rest.Config) {})(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ReachNode(t.Context(), "n"); err != nil {
		t.Errorf("the node, which responds, is not reached: %v", err)
	}
	if got := sent.Load(); got >= far {
		t.Errorf("all %d bytes were read", got)
	}
}

// TestCustomResourceDefinitionsAreRequestedInProtobuf is about a user whose program serves their API: a list of millions of empty ones would fill the memory
// of the gardenlet. It is known before they are decoded for those in protobuf only.
func TestCustomResourceDefinitionsAreRequestedInProtobuf(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/customresourcedefinitions") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apiextensions.k8s.io/v1","resources":[`+
				`{"name":"customresourcedefinitions","kind":"CustomResourceDefinition","verbs":["list"]}]}`)
			return
		}
		if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, "application/vnd.kubernetes.protobuf") {
			t.Errorf("accepts %q", accept)
		}
		list := &apiextensionsv1.CustomResourceDefinitionList{Items: []apiextensionsv1.CustomResourceDefinition{{}}}
		list.Items[0].Name = "things.example.com"
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
		if err := protobuf.NewSerializer(nil, nil).Encode(list, w); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"a": {Server: server.URL}}, Contexts: map[string]*clientcmdapi.Context{"a": {Cluster: "a"}}, CurrentContext: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client, err := Connector(scheme, "test", func(*rest.Config) {})(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := client.List(t.Context(), list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "things.example.com" {
		t.Errorf("List() = %v, %v", list.Items, err)
	}
}

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
