// Package authorizer decides what gardenlets, extensions and gardenadm may do in the garden: each only what concerns its own seed or
// self-hosted shoot. It allows, or has no opinion; a request that no other authorizer allows is then refused.
//
// Source: concepts.txt, gardener-admission-controller, "Authorization webhook handlers".
package authorizer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	kauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// Live reads the garden itself, for what the graph does not know.
type Live interface {
	// Exists reports whether an object exists.
	Exists(ctx context.Context, group, resource string, name types.NamespacedName) (bool, error)
	// ShootOfBootstrapToken returns the self-hosted shoot that a bootstrap token in namespace kube-system is for. It is empty if the
	// Secret does not exist, or names no shoot.
	ShootOfBootstrapToken(ctx context.Context, secret string) (types.NamespacedName, error)
}

// Values are what the authorizers need.
type Values struct {
	Graph *graph.Graph
	// Complete reports whether the graph has all objects. Before, nothing is allowed.
	Complete func() bool
	Live     Live
	// Checked gets how long it took to find out whether an object belongs to a seed or a self-hosted shoot. It may be nil.
	Checked func(from, to graph.Kind, took time.Duration)
}

func (v *Values) checked(from, to graph.Kind, start time.Time) {
	if v.Checked != nil {
		v.Checked(from, to, time.Since(start))
	}
}

// Seeds authorizes the clients of seeds.
type Seeds struct {
	Values
	rules table
}

// NewSeeds returns the authorizer for the clients of seeds.
func NewSeeds(v Values) *Seeds { return &Seeds{v, index(seedRules())} }

// Authorize allows a request of a client for its own seed.
func (s *Seeds) Authorize(ctx context.Context, a kauthorizer.Attributes) (kauthorizer.Decision, string, error) {
	seed, ok := client.OfSeed(a.GetUser())
	if !ok || !a.IsResourceRequest() {
		return kauthorizer.DecisionNoOpinion, "", nil
	}
	return s.decide(ctx, s.rules, a, requester{kind: seed.Type, seed: seed.Name}, func(key graph.Key) bool {
		defer s.checked(key.Kind, graph.Seed, time.Now())
		return s.Graph.LeadsToSeed(key, seed.Name)
	})
}

// Shoots authorizes the clients of self-hosted shoots.
type Shoots struct {
	Values
	rules, gardenadm table
	seeds            *Seeds
}

// NewShoots returns the authorizer for the clients of self-hosted shoots. Those that are seeds may do what the clients of the seed may.
func NewShoots(v Values, seeds *Seeds) *Shoots {
	return &Shoots{v, index(shootRules()), index(gardenadmRules()), seeds}
}

// Authorize allows a request of a client for its own shoot.
func (s *Shoots) Authorize(ctx context.Context, a kauthorizer.Attributes) (kauthorizer.Decision, string, error) {
	shoot, ok := client.OfShoot(a.GetUser())
	if !ok || !a.IsResourceRequest() {
		return kauthorizer.DecisionNoOpinion, "", nil
	}
	// Members of a project may create ServiceAccounts with any names. Only a self-hosted shoot has clients.
	if shoot.Type != client.Gardenadm && !s.Graph.SelfHosted(shoot.NamespacedName) {
		return kauthorizer.DecisionNoOpinion, fmt.Sprintf("shoot %s is not self-hosted", shoot.NamespacedName), nil
	}
	r := requester{kind: shoot.Type, namespace: shoot.Namespace, shoot: shoot.Name}
	rules := s.rules
	switch shoot.Type {
	case client.Gardenadm:
		rules = s.gardenadm
	case client.Extension:
		if decision, reason, err := s.asSeed(ctx, a, shoot); err != nil || decision == kauthorizer.DecisionAllow {
			return decision, reason, err
		}
	case client.Gardenlet:
		if decision, reason, err, final := s.deletesToken(ctx, a, shoot); final {
			return decision, reason, err
		}
	}
	return s.decide(ctx, rules, a, r, func(key graph.Key) bool {
		defer s.checked(key.Kind, graph.Shoot, time.Now())
		return s.Graph.LeadsToShoot(key, shoot.NamespacedName)
	})
}

// asSeed decides for an extension of a self-hosted shoot that is a seed, as for an extension of the seed.
func (s *Shoots) asSeed(ctx context.Context, a kauthorizer.Attributes, shoot client.Shoot) (kauthorizer.Decision, string, error) {
	if shoot.Namespace != constants.GardenNamespace || !s.Graph.Has(graph.Key{Kind: graph.Seed, Name: shoot.Name}) {
		return kauthorizer.DecisionNoOpinion, "", nil
	}
	namespace := constants.SeedNamespaceNamePrefix + shoot.Name
	return s.seeds.Authorize(ctx, as{a, &user.DefaultInfo{
		Name:   serviceaccount.MakeUsername(namespace, "extension-delegated"),
		Groups: serviceaccount.MakeGroupNames(namespace),
	}})
}

// as is a request that another user makes.
type as struct {
	kauthorizer.Attributes
	user user.Info
}

// GetUser returns the other user.
func (a as) GetUser() user.Info { return a.user }

// deletesToken decides on deletions of bootstrap tokens: a gardenlet deletes its own when it has a client certificate. The name of the
// Secret does not say whose it is.
func (s *Shoots) deletesToken(ctx context.Context, a kauthorizer.Attributes, shoot client.Shoot) (_ kauthorizer.Decision, reason string, _ error, final bool) {
	if a.GetVerb() != verbDelete || a.GetAPIGroup() != "" || a.GetResource() != "secrets" || a.GetSubresource() != "" ||
		a.GetNamespace() != "kube-system" || !strings.HasPrefix(a.GetName(), graph.BootstrapTokenPrefix) {
		return kauthorizer.DecisionNoOpinion, "", nil, false
	}
	of, err := s.Live.ShootOfBootstrapToken(ctx, a.GetName())
	switch {
	case err != nil:
		return kauthorizer.DecisionNoOpinion, "", fmt.Errorf("read bootstrap token %s: %w", a.GetName(), err), true
	case of == shoot.NamespacedName:
		return kauthorizer.DecisionAllow, "", nil, true
	case of != types.NamespacedName{}:
		return kauthorizer.DecisionNoOpinion, fmt.Sprintf("the bootstrap token is for shoot %s, not for %s", of, shoot.NamespacedName), nil, true
	}
	return kauthorizer.DecisionNoOpinion, "", nil, false
}

// resource is what rules are found by.
type resource struct{ group, name string }

// table has the rules of each resource.
type table map[resource][]rule

func index(rules []rule) table {
	t := table{}
	for _, r := range rules {
		at := resource{r.group, r.resource}
		t[at] = append(t[at], r)
	}
	return t
}

// find returns the rule for a resource and a type of clients.
func (t table) find(a kauthorizer.Attributes, kind client.Type) *rule {
	rules := t[resource{a.GetAPIGroup(), a.GetResource()}]
	at := slices.IndexFunc(rules, func(r rule) bool { return len(r.only) == 0 || slices.Contains(r.only, kind) })
	if at < 0 {
		return nil
	}
	return &rules[at]
}

// decide applies the rule for a request. related says which objects lead to the seed or shoot of the client.
func (v *Values) decide(ctx context.Context, rules table, a kauthorizer.Attributes, of requester, related func(graph.Key) bool) (kauthorizer.Decision, string, error) {
	rule := rules.find(a, of.kind)
	if rule == nil {
		return kauthorizer.DecisionNoOpinion, "", nil
	}
	for i := range rule.exceptions {
		e := &rule.exceptions[i]
		switch {
		case !e.matches(a, of):
		case e.instead != nil:
			return v.apply(ctx, e.instead, a, of, related)
		case e.reason != "":
			return kauthorizer.DecisionNoOpinion, e.reason, nil
		default:
			return kauthorizer.DecisionAllow, "", nil
		}
	}
	return v.apply(ctx, rule, a, of, related)
}

func (e *exception) matches(a kauthorizer.Attributes, of requester) bool {
	return (len(e.only) == 0 || slices.Contains(e.only, of.kind)) &&
		(len(e.verbs) == 0 || e.verbs.has(a.GetVerb())) &&
		(e.namespace == "" || e.namespace.of(of) == a.GetNamespace()) &&
		(e.name == nil || e.name(of, a.GetName())) &&
		(e.subresources || a.GetSubresource() == "")
}

func (v *Values) apply(ctx context.Context, r *rule, a kauthorizer.Attributes, of requester, related func(graph.Key) bool) (kauthorizer.Decision, string, error) {
	no := func(reason string) (kauthorizer.Decision, string, error) {
		return kauthorizer.DecisionNoOpinion, reason, nil
	}
	verb := a.GetVerb()
	switch namespace := r.namespace.of(of); {
	case namespace != "" && a.GetNamespace() != namespace:
		return no(fmt.Sprintf("only objects in namespaces %q may be used", []string{namespace}))
	case a.GetSubresource() != "" && !slices.Contains(r.subresources, a.GetSubresource()):
		return no(fmt.Sprintf("only the subresources %q may be used", sorted(r.subresources)))
	case r.always.has(verb):
		return kauthorizer.DecisionAllow, "", nil
	case !r.related.has(verb):
		return no(fmt.Sprintf("only the verbs %q are allowed", sorted(slices.Concat(r.always, r.related))))
	}
	if (verb == verbList || verb == verbWatch) && (a.GetName() == "" || r.selectsName()) {
		if selects(r, a, of) {
			return kauthorizer.DecisionAllow, "", nil
		}
		return no("only the objects of " + of.String() + " may be listed or watched; a selector for them is missing")
	}
	key := graph.Key{Kind: r.kind, Namespace: a.GetNamespace(), Name: a.GetName()}
	if r.kind == graph.Namespace {
		key.Namespace = "" // requests for a namespace carry its own name there
	}
	switch {
	case key.Name == "":
		return no("the request has no name")
	case !v.Complete():
		return no("not all objects of the garden are known yet")
	case related(key):
		return kauthorizer.DecisionAllow, "", nil
	case verb == verbDelete && !v.Graph.Has(key):
		return v.deleteUnknown(ctx, a, of)
	}
	return no("no relationship between " + key.String() + " and " + of.String())
}

// deleteUnknown allows the deletion of what does not exist, so that the client gets to know that.
func (v *Values) deleteUnknown(ctx context.Context, a kauthorizer.Attributes, of requester) (kauthorizer.Decision, string, error) {
	name := types.NamespacedName{Namespace: a.GetNamespace(), Name: a.GetName()}
	exists, err := v.Live.Exists(ctx, a.GetAPIGroup(), a.GetResource(), name)
	switch {
	case err != nil:
		return kauthorizer.DecisionNoOpinion, "", fmt.Errorf("read %s %s: %w", a.GetResource(), name, err)
	case exists:
		return kauthorizer.DecisionNoOpinion, fmt.Sprintf("nothing of %s refers to %s %s", of, a.GetResource(), name), nil
	}
	return kauthorizer.DecisionAllow, "", nil
}

// String names the seed or shoot of a client.
func (r requester) String() string {
	if r.seed != "" {
		return "seed " + r.seed
	}
	return "shoot " + r.namespace + "/" + r.shoot
}

func (r *rule) selectsName() bool {
	return slices.ContainsFunc(r.fields, func(s selector) bool { return s.key == "metadata.name" })
}

// selects reports whether a list or watch is limited to the objects of the client: each field and label of the rule has just its value.
func selects(r *rule, a kauthorizer.Attributes, of requester) bool {
	if len(r.fields)+len(r.labels) == 0 {
		return false
	}
	// Requirements that cannot be read are dropped here. They limit the answer further, so that the others still count.
	byField, _ := a.GetFieldSelector()
	byLabel, _ := a.GetLabelSelector()
	for _, want := range r.fields {
		key, value := want.key.of(of), want.value.of(of)
		if !slices.ContainsFunc(byField, func(got fields.Requirement) bool {
			return got.Field == key && got.Value == value && (got.Operator == selection.Equals || got.Operator == selection.DoubleEquals || got.Operator == selection.In)
		}) {
			return false
		}
	}
	for _, want := range r.labels {
		key, value := want.key.of(of), want.value.of(of)
		if !slices.ContainsFunc(byLabel, func(got labels.Requirement) bool { return got.Key() == key && equals(got, value) }) {
			return false
		}
	}
	return true
}

// equals reports whether a requirement allows one value only.
func equals(r labels.Requirement, value string) bool {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		return r.ValuesUnsorted() != nil && len(r.ValuesUnsorted()) == 1 && r.ValuesUnsorted()[0] == value
	default:
		return false
	}
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
