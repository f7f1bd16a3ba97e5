package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	kauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"

	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/authorizer"
	"gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// authorizerFacts are the rules of the two authorizers.
type authorizerFacts struct {
	Identities struct {
		Cases []struct {
			User        *string
			Groups      []string
			Seed, Shoot any
		}
	}
	SeedAuthorizer, ShootAuthorizer struct{ Rules []authorizerRule }
}

type authorizerRule struct {
	Group, Resource, Vertex                        string
	Users, Always, Graph, Subresources, Namespaces []string
	Fields, Labels                                 map[string]string
	Shortcuts                                      []any
}

func TestAuthorizerIdentities(t *testing.T) {
	var facts authorizerFacts
	readAuthorizers(t, &facts)
	for _, tc := range facts.Identities.Cases {
		var u user.Info
		if tc.User != nil {
			u = &user.DefaultInfo{Name: *tc.User, Groups: tc.Groups}
		}
		seed, shoot := any("-"), any("-")
		if c, ok := client.OfSeed(u); ok {
			seed = []any{c.Name, string(c.Type)}
		}
		if c, ok := client.OfShoot(u); ok {
			shoot = []any{c.Namespace, c.Name, string(c.Type)}
		}
		if fmt.Sprint(seed, shoot) != fmt.Sprint(tc.Seed, tc.Shoot) {
			t.Errorf("user %v with groups %v is seed %v, shoot %v; want %v, %v", tc.User, tc.Groups, seed, shoot, tc.Seed, tc.Shoot)
		}
	}
	t.Logf("%d identities", len(facts.Identities.Cases))
}

// TestAuthorizerRules asks for each rule of the facts and each type of client: all verbs, with each subresource, for an object that
// leads to the client's seed or shoot and for one that does not. Where the facts say that the rule is left, the answer is that of the
// authorizer's own tests.
func TestAuthorizerRules(t *testing.T) {
	var facts authorizerFacts
	readAuthorizers(t, &facts)
	g := graph.New(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	values := authorizer.Values{Graph: g, Complete: func() bool { return true }, Live: existing{}}
	seeds := authorizer.NewSeeds(values)
	shoots := authorizer.NewShoots(values, seeds)
	m := &authorizerMatrix{T: t, graph: g}
	for _, of := range []struct {
		kind, name string
		groups     []string
	}{
		{"gardenlet", "gardener.cloud:system:seed:foo", []string{"gardener.cloud:system:seeds"}},
		{"extension", "system:serviceaccount:seed-foo:extension-bar", []string{"system:serviceaccounts", "system:serviceaccounts:seed-foo"}},
	} {
		m.authorizer, m.user, m.kind, m.target = seeds, &user.DefaultInfo{Name: of.name, Groups: of.groups}, of.kind, graph.Key{Kind: graph.Seed, Name: "foo"}
		m.values = strings.NewReplacer("<seed>", "foo")
		for _, r := range facts.SeedAuthorizer.Rules {
			m.check(r)
		}
	}
	for _, of := range []struct {
		kind, name string
		groups     []string
	}{
		{"gardenlet", "gardener.cloud:system:shoot:garden-p:foo", []string{"gardener.cloud:system:shoots"}},
		{"extension", "system:serviceaccount:garden-p:extension-shoot--foo--e", []string{"system:serviceaccounts", "system:serviceaccounts:garden-p"}},
	} {
		m.authorizer, m.user, m.kind, m.target = shoots, &user.DefaultInfo{Name: of.name, Groups: of.groups}, of.kind, graph.Key{Kind: graph.Shoot, Namespace: "garden-p", Name: "foo"}
		m.values = strings.NewReplacer("<ns>", "garden-p", "<shoot>", "foo")
		for _, r := range facts.ShootAuthorizer.Rules {
			m.check(r)
		}
	}
	t.Logf("%d cases", m.cases)
	if m.cases < 1000 {
		t.Error("the facts were not read")
	}
}

type authorizerMatrix struct {
	*testing.T
	graph      *graph.Graph
	authorizer kauthorizer.Authorizer
	user       user.Info
	kind       string
	target     graph.Key
	values     *strings.Replacer
	cases      int
}

// check asks everything about one rule.
func (m *authorizerMatrix) check(r authorizerRule) {
	if len(r.Users) > 0 && !slices.Contains(r.Users, m.kind) || r.Vertex == "" && len(r.Always) == 0 {
		return
	}
	at := slices.IndexFunc(graph.Kinds(), func(k graph.Kind) bool { return k.String() == r.Vertex })
	related, unrelated := graph.Key{Name: "mine"}, graph.Key{Name: "other"}
	if at >= 0 {
		related.Kind, unrelated.Kind = graph.Kinds()[at], graph.Kinds()[at]
	}
	if len(r.Namespaces) > 0 {
		related.Namespace = m.values.Replace(r.Namespaces[0])
	} else if !slices.Contains([]string{
		"BackupBucket", "CertificateSigningRequest", "CloudProfile", "ClusterRoleBinding", "ControllerDeployment",
		"ControllerInstallation", "ControllerRegistration", "ExposureClass", "Namespace", "Project", "Seed",
	}, r.Vertex) {
		related.Namespace = "garden-q"
	}
	unrelated.Namespace = related.Namespace
	if related.Kind == m.target.Kind {
		related = m.target
	}
	m.graph.Set(graph.Object{Key: m.target, SelfHosted: m.target.Kind == graph.Shoot})
	m.graph.Set(graph.Object{Key: unrelated})
	defer m.graph.Delete(unrelated)
	if related != m.target {
		m.graph.Set(graph.Object{Key: related, Edges: []graph.Edge{{From: related, To: m.target}}})
		defer m.graph.Delete(related)
	}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind"}
	for _, verb := range verbs {
		for _, subresource := range append([]string{"", "unknown"}, r.Subresources...) {
			for _, key := range []graph.Key{related, unrelated} {
				m.ask(r, verb, subresource, key, key == related, false)
			}
		}
		if verb == "list" || verb == "watch" {
			nameless := graph.Key{Namespace: related.Namespace}
			m.ask(r, verb, "", nameless, false, false)
			m.ask(r, verb, "", nameless, false, true)
		}
	}
}

func (m *authorizerMatrix) ask(r authorizerRule, verb, subresource string, key graph.Key, related, selected bool) {
	m.Helper()
	m.cases++
	a := kauthorizer.AttributesRecord{
		User: m.user, Verb: verb, APIGroup: r.Group, APIVersion: "v1", Resource: r.Resource, Subresource: subresource, Namespace: key.Namespace, Name: key.Name, ResourceRequest: true,
	}
	if r.Resource == "namespaces" {
		a.Namespace = key.Name
	}
	if selected {
		a.FieldSelectorRequirements, a.LabelSelectorRequirements = m.selectors(r)
	}
	want := m.allowed(r, a, related, selected)
	decision, reason, err := m.authorizer.Authorize(m.Context(), a)
	if err != nil || (decision == kauthorizer.DecisionAllow) != want || decision == kauthorizer.DecisionDeny || want && reason != "" {
		m.Errorf("%s: %s %s/%s %s in %q, related %t, selected %t: decision %d, reason %q, error %v, want allowed %t",
			m.user.GetName(), verb, r.Resource, subresource, key.Name, key.Namespace, related, selected, decision, reason, err, want)
	}
}

// allowed returns what the facts say, with selectors that have to name all fields.
func (m *authorizerMatrix) allowed(r authorizerRule, a kauthorizer.AttributesRecord, related, selected bool) bool {
	switch list := a.Verb == "list" || a.Verb == "watch"; {
	case m.shortcut(r, a):
		return true
	case a.Subresource != "" && !slices.Contains(r.Subresources, a.Subresource):
		return false
	case m.stricter(r, a):
		return false
	case slices.Contains(r.Always, a.Verb):
		return true
	case !slices.Contains(r.Graph, a.Verb):
		return false
	case list && (a.Name == "" || r.Fields["metadata.name"] != ""):
		return selected && len(r.Fields)+len(r.Labels) > 0
	case a.Name == "":
		return false
	}
	return related
}

// stricter reports whether ours refuses what the original allows: extensions of seeds only read Gardenlets, which the gardener-operator deploys, and all
// extensions only read ManagedSeeds, which gardenlets deploy, and ShootStates, from which they restore control planes.
func (m *authorizerMatrix) stricter(r authorizerRule, a kauthorizer.AttributesRecord) bool {
	onlyRead := r.Resource == "gardenlets" && m.target.Kind == graph.Seed || r.Resource == "managedseeds" || r.Resource == "shootstates"
	return onlyRead && m.kind == "extension" && slices.Contains([]string{"create", "update", "patch", "delete"}, a.Verb)
}

// shortcut reports whether one of the shortcuts of the facts is for a request of this test.
func (m *authorizerMatrix) shortcut(r authorizerRule, a kauthorizer.AttributesRecord) bool {
	read := slices.Contains([]string{"get", "list", "watch"}, a.Verb) && a.Subresource == ""
	self := a.Namespace == m.target.Namespace && a.Name == m.target.Name
	return m.target.Kind == graph.Shoot && read && (r.Resource == "shoots" && self || r.Resource == "seeds" && a.Name == "")
}

func (m *authorizerMatrix) selectors(r authorizerRule) (fields.Requirements, labels.Requirements) {
	var byField fields.Requirements
	var byLabel labels.Requirements
	for key, value := range r.Fields {
		byField = append(byField, fields.Requirement{Operator: "=", Field: m.values.Replace(key), Value: m.values.Replace(value)})
	}
	for key, value := range r.Labels {
		selector, err := labels.Parse(m.values.Replace(key) + "=" + m.values.Replace(value))
		if err != nil {
			m.Fatal(err)
		}
		requirements, _ := selector.Requirements()
		byLabel = append(byLabel, requirements...)
	}
	return byField, byLabel
}

// existing says that everything exists.
type existing struct{}

func (existing) Exists(context.Context, string, string, types.NamespacedName) (bool, error) {
	return true, nil
}

func (existing) ShootOfBootstrapToken(context.Context, string) (types.NamespacedName, error) {
	return types.NamespacedName{}, nil
}

func readAuthorizers(t *testing.T, into *authorizerFacts) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(factsDir(t), "authorizers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}
