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

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

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

// refused returns the requests that were refused and, as far as the log goes, not allowed later. A request that is repeated until
// gardener-admission-controller has noticed a new object is not among them. seen is how many requests there were.
func (a audit) refused(t *testing.T) (refused []string, seen int) {
	t.Helper()
	file, err := os.Open(a.log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pending, lines := map[string]string{}, bufio.NewScanner(file)
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
			pending[request] = event.ResponseStatus.Message + " " + event.Annotations["authorization.k8s.io/reason"]
		} else {
			delete(pending, request)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(pending)), seen
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
	for _, request := range refused {
		if request != none {
			t.Errorf("refused: %s", request)
		}
	}
}
