package decoded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
)

func newScheme(t *testing.T) *apiruntime.Scheme {
	t.Helper()
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// field encodes a field of a message with a text or a message.
func field(number int, payload []byte) []byte {
	tag := binary.AppendUvarint(nil, uint64(number)<<3|2) //nolint:gosec // a small number
	return append(binary.AppendUvarint(tag, uint64(len(payload))), payload...)
}

// enveloped is the content of an object in protobuf as an API server sends it.
func enveloped(apiVersion, kind string, content []byte) []byte {
	return append(append([]byte("k8s\x00"), field(1, append(field(1, []byte(apiVersion)), field(2, []byte(kind))...))...), field(2, content)...)
}

func nodes(items ...[]byte) []byte {
	var all []byte
	for _, item := range items {
		all = append(all, field(2, item)...)
	}
	return all
}

func node() *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", Labels: map[string]string{"topology.kubernetes.io/zone": "a"}, ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}}},
	}}
	n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("16336032Ki"), "example.com/gpu": resource.MustParse("1500m")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "kubelet is posting ready status"}}
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example.com/a@sha256:0", "registry.example.com/a:v1"}, SizeBytes: 1}}
	return n
}

func TestObject(t *testing.T) {
	const budget = 1 << 20
	nested := func(depth int) []byte {
		var schema []byte
		for range depth {
			schema = field(28, schema) // not
		}
		return field(2, field(2, field(7, field(4, field(1, schema))))) // items.spec.versions.schema.openAPIV3Schema
	}
	regular, err := (&corev1.NodeList{Items: []corev1.Node{*node(), *node()}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	times := func(n int, item []byte) []byte { return bytes.Repeat(item, n) }
	for name, tc := range map[string]struct {
		apiVersion, kind string
		content          []byte
		refused          bool
	}{
		"two nodes":                      {"v1", "NodeList", regular, false},
		"a hundred nodes":                {"v1", "NodeList", times(50, regular), false},
		"a few empty nodes":              {"v1", "NodeList", times(3, field(2, nil)), false},
		"many empty nodes":               {"v1", "NodeList", times(10_000, field(2, nil)), true},
		"many empty conditions":          {"v1", "NodeList", nodes(field(3, times(10_000, field(4, nil)))), true},
		"many empty images":              {"v1", "NodeList", nodes(field(3, times(50_000, field(8, nil)))), true},
		"many empty labels":              {"v1", "NodeList", nodes(field(1, times(50_000, field(11, nil)))), true},
		"many empty volumes in use":      {"v1", "NodeList", nodes(field(3, times(50_000, field(9, nil)))), true},
		"many quantities":                {"v1", "NodeList", nodes(field(3, times(2_000, field(1, field(2, field(1, []byte("1234567890123456789e900"))))))), true},
		"a quantity that takes minutes":  {"v1", "NodeList", nodes(field(3, field(1, field(2, field(1, []byte("1234567890123456789e99999999")))))), true},
		"many empty containers":          {"v1", "PodList", nodes(field(2, times(10_000, field(2, nil)))), true},
		"a number with too many bits":    {"v1", "NodeList", times(10_000, append(binary.AppendUvarint(nil, 1<<35|2<<3|2), 0)), true},
		"a kind that is not decoded":     {"v1", "Other", times(10_000, field(2, nil)), false},
		"no kind, and short":             {"v1", "", regular, false},
		"no kind, and long":              {"v1", "", times(200_000, field(2, nil)), true},
		"no version, and long":           {"", "NodeList", times(200_000, field(2, nil)), true},
		"many empty objects of metadata": {"meta.k8s.io/v1", "PartialObjectMetadataList", times(10_000, field(2, nil)), true},
		"a schema":                       {"apiextensions.k8s.io/v1", "CustomResourceDefinitionList", nested(20), false},
		"a schema that ends the process": {"apiextensions.k8s.io/v1", "CustomResourceDefinitionList", nested(1_000), true},
		"malformed":                      {"v1", "NodeList", []byte{0x12, 0xff}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&transport{scheme: newScheme(t), most: budget}).object(enveloped(tc.apiVersion, tc.kind, tc.content), &walk{left: budget})
			if (err != nil) != tc.refused {
				t.Errorf("error is %v", err)
			}
		})
	}
	twice := append(enveloped("v1", "NodeList", regular), field(2, times(10_000, field(2, nil)))...)
	if err := (&transport{scheme: newScheme(t), most: budget}).object(twice, &walk{left: budget}); err == nil {
		t.Error("the second content is not refused")
	}
}

// What is allowed for is not less than what is kept.
func TestSizeIsEnough(t *testing.T) {
	many := make([]corev1.Node, 2_000)
	for i := range many {
		many[i] = *node()
	}
	regular, err := (&corev1.NodeList{Items: many}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"regular nodes":    regular,
		"empty nodes":      bytes.Repeat(field(2, nil), 20_000),
		"empty conditions": nodes(field(3, bytes.Repeat(field(4, nil), 100_000))),
		"empty addresses":  nodes(field(3, bytes.Repeat(field(5, nil), 100_000))),
		"large quantities": nodes(field(3, func() (all []byte) {
			for i := range 20_000 {
				all = append(all, field(1, append(field(1, fmt.Append(nil, i)), field(2, field(1, []byte("1234567890123456789e900")))...))...)
			}
			return all
		}())),
		"labels": nodes(field(1, func() (all []byte) {
			for i := range 50_000 {
				all = append(all, field(11, field(1, fmt.Append(nil, i)))...)
			}
			return all
		}())),
	} {
		t.Run(name, func(t *testing.T) {
			heap := func() int64 {
				runtime.GC()
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				return int64(stats.HeapAlloc) //nolint:gosec // it is far smaller
			}
			before, list := heap(), &corev1.NodeList{}
			if err := list.Unmarshal(content); err != nil {
				t.Fatal(err)
			}
			kept := heap() - before
			runtime.KeepAlive(list)
			w := &walk{left: maxObjects}
			if !w.message(content, fieldsOf((&transport{scheme: newScheme(t)}).typeOf(corev1.SchemeGroupVersion.WithKind("NodeList"))), 0) {
				t.Fatal("it is too much")
			}
			if counted := maxObjects - w.left; kept > counted || counted > 20*kept {
				t.Errorf("%d bytes are kept, and %d are counted", kept, counted)
			}
		})
	}
}

// clientOf returns a client of a server.
func clientOf(t *testing.T, handle http.HandlerFunc) client.WithWatch {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, Timeout: 0}
	LimitResponses(config, newScheme(t))
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	c, err := client.NewWithWatch(config, client.Options{Scheme: newScheme(t), Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	}
}

const (
	tooLarge = "the response is too large"
	// slowQuantity takes half a minute with an exponent of eight digits, and hours with nine.
	slowQuantity = "1234567890123456789e9999"
	slowNode     = `{"metadata":{"name":"n1"},"status":{"capacity":{"cpu":"` + slowQuantity + `"}}}`
)

// A user has the API of the nodes served by a program.
func TestList(t *testing.T) {
	regular, err := (&corev1.NodeList{Items: []corev1.Node{*node()}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const protobuf, json = "application/vnd.kubernetes.protobuf", "application/json"
	for name, tc := range map[string]struct {
		contentType string
		body        []byte
		want        string
	}{
		"a node":             {protobuf, enveloped("v1", "NodeList", regular), ""},
		"a node in JSON":     {json, []byte(`{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"}}]}`), ""},
		"too many nodes":     {protobuf, enveloped("v1", "NodeList", bytes.Repeat(field(2, nil), 900_000)), tooLarge},
		"without a type":     {"", enveloped("v1", "NodeList", bytes.Repeat(field(2, nil), 900_000)), tooLarge},
		"zeros in JSON":      {json, []byte(`{"kind":"NodeList","apiVersion":"v1","items":[0` + strings.Repeat(",0", 200_000) + `]}`), tooLarge},
		"a quantity in JSON": {json, []byte(`{"kind":"NodeList","apiVersion":"v1","items":[` + slowNode + `]}`), tooLarge},
		"a quantity in YAML": {"application/yaml", []byte("kind: NodeList\napiVersion: v1\nitems:\n- " + slowNode + "\n"), tooLarge},
		"a quantity without a type": {
			"", enveloped("v1", "NodeList", nodes(field(3, field(1, append(field(1, []byte("cpu")), field(2, field(1, []byte(slowQuantity)))...))))), tooLarge,
		},
		"a response that is short": {protobuf, []byte("k8s"), "expected prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			list := &corev1.NodeList{}
			err := clientOf(t, answer(tc.contentType, tc.body)).List(t.Context(), list)
			switch {
			case tc.want == "" && (err != nil || len(list.Items) != 1 || list.Items[0].Name != "n1"):
				t.Errorf("List() = %v, %v", list.Items, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("List() = %v, want %q", err, tc.want)
			}
		})
	}
}

// A user has an API served by a program, which says which resources there are.
func TestResources(t *testing.T) {
	list := func(kind, field string, n int, item string) string {
		return `{"kind":"` + kind + `","apiVersion":"v1","` + field + `":[` + item + strings.Repeat(","+item, n-1) + `]}`
	}
	for name, tc := range map[string]struct {
		code int
		body string
		want string
	}{
		"ten thousand": {
			http.StatusOK, list("APIResourceList", "resources", 10_000,
				`{"name":"things","singularName":"thing","namespaced":true,"kind":"Thing","verbs":["create","delete","deletecollection","get","list","patch","update","watch"]}`), "",
		},
		"far too many":         {http.StatusOK, list("APIResourceList", "resources", 2_000_000, `{}`), tooLarge},
		"nodes instead":        {http.StatusOK, list("NodeList", "items", 2_000_000, `{}`), tooLarge},
		"a quantity":           {http.StatusOK, list("NodeList", "items", 1, slowNode), tooLarge},
		"an error":             {http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it sleeps","code":503}`, "it sleeps"},
		"an error with nodes":  {http.StatusServiceUnavailable, list("NodeList", "items", 100_000, `{}`), tooLarge},
		"an error that is not": {http.StatusServiceUnavailable, list("NodeList", "items", 1, slowNode), tooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			}))
			t.Cleanup(server.Close)
			config := &rest.Config{Host: server.URL}
			LimitResponses(config, newScheme(t))
			c, err := discovery.NewDiscoveryClientForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.ServerResourcesForGroupVersion("example.com/v1"); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// event is an event of a watch with an object.
func event(t *testing.T, object []byte) []byte {
	data, err := (&metav1.WatchEvent{Type: "ADDED", Object: apiruntime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...) //nolint:gosec // it is small
}

// Whoever watches may keep what all events bring.
func TestEventsCountTogether(t *testing.T) {
	const budget, many = 1 << 20, 10_000
	one := event(t, enveloped("v1", "Node", nil))
	next := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {apiruntime.ContentTypeProtobuf}},
			Body: io.NopCloser(bytes.NewReader(bytes.Repeat(one, many))),
		}, nil
	})
	for range 2 { // each watch has a budget of its own
		response, err := (&transport{next, newScheme(t), budget}).RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/nodes?watch=true", nil))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(response.Body)
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if events := len(data) / len(one); !errors.Is(err, kube.ErrTooLarge) || events < 100 || events*int(reflect.TypeFor[corev1.Node]().Size()) > budget {
			t.Errorf("the watch ended after %d empty nodes: %v", events, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestWatch(t *testing.T) {
	content, err := node().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	regular := event(t, enveloped("v1", "Node", content))
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		for _, data := range [][]byte{regular, regular, event(t, enveloped("v1", "Node", field(3, bytes.Repeat(field(4, nil), 5_000_000))))} {
			_, _ = w.Write(data)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
	w, err := c.Watch(t.Context(), &corev1.NodeList{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var got []string
	for e := range w.ResultChan() {
		if n, ok := e.Object.(*corev1.Node); ok && e.Type == watch.Added {
			if diff := cmp.Diff(node(), n); diff != "" && len(got) < 2 {
				t.Errorf("the node (-want +got):\n%s", diff)
			}
		}
		if got = append(got, string(e.Type)); len(got) == 3 {
			break
		}
	}
	if strings.Join(got, " ") != "ADDED ADDED" && strings.Join(got, " ") != "ADDED ADDED ERROR" {
		t.Errorf("the events are %v", got)
	}
}

// A body ends where it ended.
func TestBodies(t *testing.T) {
	ok := func([]byte) error { return nil }
	for name, body := range map[string]io.ReadCloser{
		"whole":  &whole{ReadCloser: io.NopCloser(strings.NewReader("\x00\x00\x00\x01a\x00\x00\x00\x00")), check: ok},
		"events": &events{ReadCloser: io.NopCloser(strings.NewReader("\x00\x00\x00\x01a\x00\x00\x00\x00")), check: ok},
	} {
		if got, err := io.ReadAll(body); err != nil || string(got) != "\x00\x00\x00\x01a\x00\x00\x00\x00" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	cut := &events{ReadCloser: io.NopCloser(strings.NewReader("\x00\x00\x00\x02a")), check: ok}
	if _, err := io.ReadAll(cut); err == nil {
		t.Error("an event that is cut off is no error")
	}
}
