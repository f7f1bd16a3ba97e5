package plant

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gardener.cloud/gardener/internal/kube"
)

func anywhere(string) string { return "" }

// serve returns a cluster whose API server is a function, below a path as that of a proxy in front of several clusters.
func serve(t *testing.T, handle http.HandlerFunc) *cluster {
	t.Helper()
	server := httptest.NewTLSServer(http.StripPrefix("/clusters/a", handle))
	t.Cleanup(server.Close)
	c, err := connect([]byte(kubeconfigFor(server, "/clusters/a")), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func kubeconfigFor(server *httptest.Server, path string) string {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return `{kind: Config, apiVersion: v1, current-context: a, contexts: [{name: a, context: {user: a, cluster: a}}], users: [{name: a, user: {token: t}}],
		clusters: [{name: a, cluster: {server: "` + server.URL + path + `", certificate-authority-data: ` + ca + `}}]}`
}

func nodeJSON(name, ready string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"topology.kubernetes.io/region":"eu-west-1"}},"spec":{"providerID":"aws:///a/i-1"},`+
		`"status":{"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":%q}]}}`, name, ready)
}

func TestCheck(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t" {
			t.Errorf("%s is requested without the token", r.URL)
		}
		switch r.URL.Path + "?" + r.URL.RawQuery {
		case "/healthz?":
			fmt.Fprint(w, "ok")
		case "/version?":
			fmt.Fprint(w, `{"major":"1","gitVersion":"v1.36.1"}`)
		case "/api/v1/nodes?limit=100":
			fmt.Fprintf(w, `{"metadata":{"continue":"x/y"},"items":[%s,%s]}`, nodeJSON("a", "True"), nodeJSON("b", "Unknown"))
		case "/api/v1/nodes?continue=x%2Fy&limit=100":
			fmt.Fprint(w, `{"items":[{"metadata":{"name":"c","labels":{"failure-domain.beta.kubernetes.io/region":"b"}}}]}`)
		default:
			t.Errorf("%s is requested", r.URL)
		}
	})
	want := &observed{version: "v1.36.1", nodes: nodes{total: 3, unready: 2, unreadyNames: []string{"b", "c"}, providerID: "aws:///a/i-1", region: "eu-west-1"}}
	if diff := cmp.Diff(want, c.check(t.Context()), cmp.AllowUnexported(observed{}, nodes{})); diff != "" {
		t.Errorf("check() (-want +got):\n%s", diff)
	}
}

// The server of a tenant can neither fill the memory, nor keep a worker for longer than the timeout, nor lead it to another server.
func TestHostileServers(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes   http.HandlerFunc
		timeout time.Duration
		want    error
	}{
		"a response without an end": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"items":[{"metadata":{"name":"`)
			for chunk := strings.Repeat("a", 64<<10); ; {
				if _, err := fmt.Fprint(w, chunk); err != nil {
					return
				}
			}
		}, time.Minute, kube.ErrTooLarge},
		"more nodes than requested": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"items":[{}`+strings.Repeat(",{}", pageSize)+`]}`)
		}, time.Minute, errTooManyNodes},
		"pages without an end": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"metadata":{"continue":"more"},"items":[{}`+strings.Repeat(",{}", pageSize-1)+`]}`)
		}, time.Minute, errTooManyNodes},
		"empty pages without an end": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"metadata":{"continue":"more"},"items":null}`)
		}, time.Minute, errTooManyNodes},
		"a node with too many conditions": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"items":[{"status":{"conditions":[{}`+strings.Repeat(",{}", maxConditions)+`]}}]}`)
		}, time.Minute, errTooManyConditions},
		"a long token for the next page": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("continue") {
				t.Error("the token was sent back")
			}
			fmt.Fprint(w, `{"metadata":{"continue":"`+strings.Repeat("x", maxContinue+1)+`"},"items":[{}]}`)
		}, time.Minute, errContinue},
		"what is not a list": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"items":{"a":1}}`) }, time.Minute, errMalformed},
		"what is not JSON":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, time.Minute, errMalformed},
		"no answer":          {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 100 * time.Millisecond, context.DeadlineExceeded},
		"an answer that stops": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"items":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 100 * time.Millisecond, context.DeadlineExceeded},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://metadata.example.com", http.StatusFound)
		}, time.Minute, kube.ErrRedirected},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tc.timeout)
			defer cancel()
			if kept, err := serve(t, tc.nodes).listNodes(ctx); !errors.Is(err, tc.want) || !cmp.Equal(kept, nodes{}, cmp.AllowUnexported(nodes{})) {
				t.Errorf("listNodes() = %v, %v, want nothing and %v", kept, err, tc.want)
			}
		})
	}
}

// Of nodes that are not ready, only the names are kept that a message has.
func TestUnreadyNodes(t *testing.T) {
	long := strings.Repeat("a", 254)
	for name, tc := range map[string]struct {
		given, want []string
	}{
		"few":                        {[]string{"b", "a", "c"}, []string{"a", "b", "c"}},
		"many, in any order":         {[]string{"g", "b", "f", "a", "e", "d", "c"}, []string{"a", "b", "c", "d", "e"}},
		"names that no server takes": {[]string{"b", "<script>", long}, []string{"(invalid name)", "(invalid name)", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodes{}
			for _, name := range tc.given {
				n.addUnready(name)
			}
			if diff := cmp.Diff(nodes{unready: len(tc.given), unreadyNames: tc.want}, n, cmp.AllowUnexported(nodes{})); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// The URL of a request is of the length that a tenant and its server want.
func TestErrorsWithoutURL(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	c, err := connect([]byte(kubeconfigFor(server, "/secret")), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	if err := c.get(t.Context(), "/healthz", nil, nil); !errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error is %v", err)
	}
}
