package gardenlet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/test/env"
)

// audit has the kube-apiserver write down what clients of the seed request in the garden: the gardenlet, and extensions.
type audit struct{ log string }

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["gardener.cloud:system:seeds", "system:serviceaccounts:seed-local"]}
- {level: None}
`

func newAudit(t *testing.T) (audit, env.Option) {
	t.Helper()
	dir := t.TempDir()
	a, policy := audit{log: filepath.Join(dir, "audit.log")}, filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	return a, env.KubeAPIServerFlags("--audit-policy-file="+policy, "--audit-log-path="+a.log, "--audit-log-mode=blocking")
}

// refusal is a request that was refused and, as far as the log goes, not allowed later.
type refusal struct {
	object auditv1.ObjectReference
	before bool // was the same request allowed before
}

// refused returns the requests that were refused in the end. A request that is repeated until gardener-admission-controller has noticed a
// new object is not among them. seen is how many requests there were.
func (a audit) refused(t *testing.T) (refused map[string]refusal, seen int) {
	t.Helper()
	file, err := os.Open(a.log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	refused, allowed, lines := map[string]refusal{}, map[string]bool{}, bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		if event.ObjectRef == nil || event.ResponseStatus == nil {
			continue
		}
		seen++
		request := requestOf(t, event)
		if event.ResponseStatus.Code == http.StatusForbidden {
			refused[request] = refusal{object: *event.ObjectRef, before: allowed[request]}
		} else {
			allowed[request] = true
			delete(refused, request)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return refused, seen
}

// requestOf returns who requests what, such as "gardenlet: get secrets garden/dns".
func requestOf(t *testing.T, event auditv1.Event) string {
	t.Helper()
	ref := event.ObjectRef
	uri, err := url.Parse(event.RequestURI)
	if err != nil {
		t.Fatal(err)
	}
	resource := ref.Resource
	if ref.Subresource != "" {
		resource += "/" + ref.Subresource
	}
	who := "gardenlet"
	if !slices.Contains(event.User.Groups, constants.SeedsGroup) {
		who = event.User.Username
	}
	text := fmt.Sprintf("%s: %s %s", who, event.Verb, resource)
	if name := strings.Trim(ref.Namespace+"/"+ref.Name, "/"); name != "" {
		text += " " + name
	}
	for _, selector := range []string{"fieldSelector", "labelSelector"} {
		if value := uri.Query().Get(selector); value != "" {
			text += " " + value
		}
	}
	return text
}

// testRequests checks, after all other tests, that nothing was refused that the gardenlet needs.
func (g *garden) testRequests(t *testing.T) {
	refused, seen := g.audit.refused(t)
	if seen < 100 {
		t.Errorf("the log has %d requests only", seen)
	}
	// It is refused where there is none, see retryingForbidden.
	none := "gardenlet: get managedseeds garden/" + seedName
	for _, request := range slices.Sorted(maps.Keys(refused)) {
		if request != none && !g.cameTooLate(t, refused[request]) {
			t.Errorf("refused: %s", request)
		}
	}
}

// cameTooLate reports whether a request was refused as its object had just been deleted, which a cache learns later.
func (g *garden) cameTooLate(t *testing.T, r refusal) bool {
	t.Helper()
	if !r.before || r.object.Name == "" {
		return false
	}
	resource := schema.GroupVersionResource{Group: r.object.APIGroup, Version: r.object.APIVersion, Resource: r.object.Resource}
	namespace := r.object.Namespace
	if namespace == constants.GardenerSeedLeaseNamespace { // The Lease belongs to the Seed, and nothing collects garbage here.
		resource, namespace = corev1beta1.SchemeGroupVersion.WithResource("seeds"), ""
	}
	_, err := dynamic.NewForConfigOrDie(g.Config).Resource(resource).Namespace(namespace).Get(t.Context(), r.object.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}
