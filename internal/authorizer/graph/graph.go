// Package graph knows which objects of the garden belong to which seed or self-hosted shoot, by what objects refer to.
//
// An object leads to a seed if the seed's gardenlet needs it: a Shoot that runs there, the Secret of the Shoot's CredentialsBinding, the
// Project of its namespace, and so on. Seeds are counted at each object, so that a question is a look-up, however many Shoots use an
// object; a change costs as much as the object has references. Names that follow from the name of another object (such as
// "<shoot>.ca-cluster") are not stored.
//
// A ManagedSeed leads to the seed that its Shoot runs on, and so do its Seed and what that Seed refers to. It ends there: what runs on
// the managed seed belongs to the managed seed only.
package graph

import (
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Graph is safe for concurrent use. Questions do not wait for each other.
type Graph struct {
	clock clock.PassiveClock

	lock     sync.RWMutex
	ids      map[Key]id
	vertices []vertex
	free     []id
	seeds    uint32   // how many numbers seeds have, or had
	numbers  []uint32 // of seeds that are gone
	// facts are the objects of ManagedSeeds, Gardenlets and Seeds, without their edges.
	facts map[id]Object
	// tokens are the ManagedSeeds and Gardenlets by the ID of their bootstrap token.
	tokens map[string][]types.NamespacedName
	// issuers are the Shoots with a managed issuer.
	issuers map[types.UID]Key
}

type id uint32

type vertex struct {
	key Key
	// exists says that the object was set. Other vertices exist because an edge begins or ends there.
	exists bool
	ends   int32  // of edges
	number uint32 // of a Seed
	seeds  counts // to which it leads
	edges  []edge // that the object declares
	in     []link // where edges to it begin; none for Seeds, which are counted
	out    []link // edges from what seeds refer to themselves, and to ServiceAccounts
}

type edge struct {
	from, to id
	scope    Scope
}

// link is the other end of an edge, and how many objects declare it.
type link struct {
	id    id
	scope Scope
	n     uint32
}

// New returns an empty graph. The clock says which client certificates have expired.
func New(c clock.PassiveClock) *Graph {
	return &Graph{clock: c, ids: map[Key]id{}, facts: map[id]Object{}, tokens: map[string][]types.NamespacedName{}, issuers: map[types.UID]Key{}}
}

// Set adds an object, or replaces what is known of it.
func (g *Graph) Set(obj Object) {
	g.lock.Lock()
	defer g.lock.Unlock()
	v := g.acquire(obj.Key)
	g.vertices[v].exists = true
	g.setFacts(v, obj)
	edges := make([]edge, 0, len(obj.Edges))
	for _, e := range obj.Edges {
		if edge := (edge{g.acquire(e.From), g.acquire(e.To), e.Scope}); !slices.Contains(edges, edge) {
			edges = append(edges, edge)
		}
	}
	g.replace(v, edges)
}

// Delete removes an object with the edges that it declares. Those of other objects stay.
func (g *Graph) Delete(key Key) {
	g.lock.Lock()
	defer g.lock.Unlock()
	v, ok := g.ids[key]
	if !ok {
		return
	}
	g.deleteFacts(v)
	g.replace(v, nil)
	g.vertices[v].exists = false
	g.release(v)
}

// replace changes the edges that an object declares.
func (g *Graph) replace(v id, edges []edge) {
	before := g.vertices[v].edges
	for _, e := range edges {
		if !slices.Contains(before, e) {
			g.connect(e)
		}
	}
	for _, e := range before {
		if !slices.Contains(edges, e) {
			g.disconnect(e)
		}
	}
	g.vertices[v].edges = edges
}

func (g *Graph) acquire(key Key) id {
	if v, ok := g.ids[key]; ok {
		return v
	}
	var v id
	if n := len(g.free); n > 0 {
		v, g.free = g.free[n-1], g.free[:n-1]
	} else {
		v = id(len(g.vertices))
		g.vertices = append(g.vertices, vertex{})
	}
	g.vertices[v].key = key
	if key.Kind == Seed {
		if n := len(g.numbers); n > 0 {
			g.vertices[v].number, g.numbers = g.numbers[n-1], g.numbers[:n-1]
		} else {
			g.vertices[v].number = g.seeds
			g.seeds++
		}
	}
	g.ids[key] = v
	return v
}

// release removes a vertex that has no object and no edges any more.
func (g *Graph) release(v id) {
	at := &g.vertices[v]
	if at.exists || at.ends > 0 {
		return
	}
	if at.key.Kind == Seed {
		g.numbers = append(g.numbers, at.number)
	}
	delete(g.ids, at.key)
	g.free = append(g.free, v)
	*at = vertex{}
}

func (g *Graph) connect(e edge) {
	from, to := &g.vertices[e.from], &g.vertices[e.to]
	from.ends++
	to.ends++
	if keepsOut(from.key.Kind, to.key.Kind) {
		from.out, _ = addLink(from.out, e.to, e.scope)
	}
	if to.key.Kind == Seed {
		if e.scope != Shoots {
			g.gain(e.from, to.number)
		}
		return
	}
	var first bool
	if to.in, first = addLink(to.in, e.from, e.scope); first && e.scope != Shoots {
		for _, seed := range to.seeds.all() {
			g.gain(e.from, seed)
		}
	}
}

func (g *Graph) disconnect(e edge) {
	from, to := &g.vertices[e.from], &g.vertices[e.to]
	if keepsOut(from.key.Kind, to.key.Kind) {
		from.out, _ = removeLink(from.out, e.to, e.scope)
	}
	if to.key.Kind == Seed {
		if e.scope != Shoots {
			g.lose(e.from, to.number)
		}
	} else {
		var last bool
		if to.in, last = removeLink(to.in, e.from, e.scope); last && e.scope != Shoots {
			for _, seed := range to.seeds.all() {
				g.lose(e.from, seed)
			}
		}
	}
	from.ends--
	to.ends--
	g.release(e.from)
	g.release(e.to)
}

// keepsOut reports whether an edge is looked up from where it begins: those to what owns others by their names, and those of the
// references of Seeds.
func keepsOut(from, to Kind) bool {
	return to == ServiceAccount || to == Seed && (from == Secret || from == ConfigMap || from == WorkloadIdentity)
}

func addLink(links []link, other id, scope Scope) (_ []link, first bool) {
	for i := range links {
		if links[i].id == other && links[i].scope == scope {
			links[i].n++
			return links, false
		}
	}
	return append(links, link{other, scope, 1}), true
}

func removeLink(links []link, other id, scope Scope) (_ []link, last bool) {
	i := slices.IndexFunc(links, func(l link) bool { return l.id == other && l.scope == scope })
	if links[i].n--; links[i].n > 0 {
		return links, false
	}
	return slices.Delete(links, i, i+1), true
}

// gain counts one more edge by which an object leads to a seed. No edges form a circle but those of a Seed and its ManagedSeed, and
// Seeds pass nothing on.
func (g *Graph) gain(v id, seed uint32) {
	if !g.vertices[v].seeds.add(seed) {
		return
	}
	for _, l := range g.vertices[v].in {
		if l.scope != Shoots {
			g.gain(l.id, seed)
		}
	}
}

func (g *Graph) lose(v id, seed uint32) {
	if !g.vertices[v].seeds.remove(seed) {
		return
	}
	for _, l := range g.vertices[v].in {
		if l.scope != Shoots {
			g.lose(l.id, seed)
		}
	}
}

func (g *Graph) setFacts(v id, obj Object) {
	g.deleteFacts(v)
	obj.Edges = nil
	switch obj.Key.Kind {
	case ManagedSeed, Gardenlet:
		name := types.NamespacedName{Namespace: obj.Key.Namespace, Name: obj.Key.Name}
		token := TokenID(name.Namespace, name.Name)
		g.tokens[token] = append(g.tokens[token], name)
		g.facts[v] = obj
	case Seed:
		g.facts[v] = obj
	case Shoot:
		if obj.ManagedIssuer != "" {
			g.issuers[obj.ManagedIssuer] = obj.Key
		}
		if obj.ManagedIssuer != "" || obj.SelfHosted {
			g.facts[v] = obj
		}
	}
}

func (g *Graph) deleteFacts(v id) {
	obj, ok := g.facts[v]
	if !ok {
		return
	}
	delete(g.facts, v)
	switch obj.Key.Kind {
	case ManagedSeed, Gardenlet:
		name := types.NamespacedName{Namespace: obj.Key.Namespace, Name: obj.Key.Name}
		token := TokenID(name.Namespace, name.Name)
		i := slices.Index(g.tokens[token], name)
		if g.tokens[token] = slices.Delete(g.tokens[token], i, i+1); len(g.tokens[token]) == 0 {
			delete(g.tokens, token)
		}
	case Shoot:
		if obj.ManagedIssuer != "" && g.issuers[obj.ManagedIssuer] == obj.Key {
			delete(g.issuers, obj.ManagedIssuer)
		}
	}
}

// Has reports whether an object exists, or others refer to it, or its name says that it belongs to one that exists.
func (g *Graph) Has(key Key) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	var buffer [8]id
	return len(g.starts(key, buffer[:0])) > 0
}

// SelfHosted reports whether a Shoot exists whose control plane runs on its own nodes.
func (g *Graph) SelfHosted(shoot types.NamespacedName) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	v, ok := g.ids[Key{Shoot, shoot.Namespace, shoot.Name}]
	return ok && g.facts[v].SelfHosted
}

// LeadsToSeed reports whether an object belongs to a seed.
func (g *Graph) LeadsToSeed(key Key, name string) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	seed, ok := g.ids[Key{Kind: Seed, Name: name}]
	if !ok {
		return false
	}
	if key == clusterIdentity {
		return g.vertices[seed].exists
	}
	number := g.vertices[seed].number
	var buffer [8]id
	starts := g.starts(key, buffer[:0])
	for _, v := range starts {
		for _, l := range g.vertices[v].out {
			if l.scope == Shoots {
				continue
			}
			starts = append(starts, l.id)
			if other := g.vertices[l.id].key; other.Kind == ServiceAccount {
				starts = g.appendOwners(starts, other)
			}
		}
	}
	return slices.ContainsFunc(starts, func(v id) bool { return v == seed || g.vertices[v].seeds.has(number) })
}

// LeadsToShoot reports whether an object belongs to a self-hosted shoot.
func (g *Graph) LeadsToShoot(key Key, shoot types.NamespacedName) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	target, ok := g.ids[Key{Shoot, shoot.Namespace, shoot.Name}]
	if !ok {
		return false
	}
	if key == clusterIdentity {
		return g.vertices[target].exists
	}
	var buffer [8]id
	starts := g.starts(key, buffer[:0])
	if name, ok := strings.CutPrefix(key.Name, SelfHostedPrefix); ok && key.Kind == Lease {
		starts = g.appendExisting(starts, Key{Shoot, key.Namespace, name})
	}
	for _, v := range starts {
		for _, l := range g.vertices[v].out {
			if l.scope != Seeds {
				starts = append(starts, l.id)
			}
		}
	}
	return len(starts) > 0 && g.leadsFrom(starts, target)
}

// leadsFrom reports whether a path leads to an object from one of others. It looks from the end, where there are few edges.
func (g *Graph) leadsFrom(starts []id, v id) bool {
	if slices.Contains(starts, v) {
		return true
	}
	return slices.ContainsFunc(g.vertices[v].in, func(l link) bool { return l.scope != Seeds && g.leadsFrom(starts, l.id) })
}

// clusterIdentity is read by each gardenlet.
var clusterIdentity = Key{ConfigMap, metav1.NamespaceSystem, constants.ClusterIdentity}

// starts appends the vertex of an object, and those of the objects that it belongs to by its name.
func (g *Graph) starts(key Key, to []id) []id {
	if v, ok := g.ids[key]; ok {
		to = append(to, v)
	}
	return g.appendOwners(to, key)
}

// appendOwners appends the objects that an object belongs to by its name.
func (g *Graph) appendOwners(to []id, key Key) []id {
	switch key.Kind {
	case Secret:
		switch key.Namespace {
		case constants.GardenerShootIssuerNamespace:
			return g.appendIssuer(to, key.Name)
		case metav1.NamespaceSystem:
			return g.appendBootstrapToken(to, key.Name)
		}
		return g.appendShoot(to, key, constants.ShootProjectSecretSuffixCACluster, constants.ShootProjectSecretSuffixSSHKeypair,
			constants.ShootProjectSecretSuffixOldSSHKeypair, constants.ShootProjectSecretSuffixMonitoring)
	case InternalSecret:
		return g.appendShoot(to, key, constants.ShootProjectSecretSuffixCAClient)
	case ConfigMap:
		return g.appendShoot(to, key, constants.ShootProjectSecretSuffixCACluster, constants.ShootProjectConfigMapSuffixCAKubelet)
	case ShootState:
		return g.appendExisting(to, Key{Shoot, key.Namespace, key.Name})
	case Namespace:
		if seed, ok := strings.CutPrefix(key.Name, constants.SeedNamespaceNamePrefix); ok {
			return g.appendExisting(to, Key{Kind: Seed, Name: seed})
		}
	case Lease:
		if key.Namespace == constants.GardenerSeedLeaseNamespace {
			return g.appendExisting(to, Key{Kind: Seed, Name: key.Name})
		}
	case ServiceAccount, ClusterRoleBinding:
		managedSeed, ok := Bootstrapped(key)
		if v, known := g.ids[managedSeed]; ok && known && g.facts[v].Bootstrap == BootstrapServiceAccount && g.mayBootstrap(v) {
			return append(to, v)
		}
	}
	return to
}

// appendShoot appends the Shoot whose name, followed by one of the suffixes, is that of an object. Names of Shoots have no dots.
func (g *Graph) appendShoot(to []id, key Key, suffixes ...string) []id {
	if shoot, suffix, _ := strings.Cut(key.Name, "."); slices.Contains(suffixes, suffix) {
		return g.appendExisting(to, Key{Shoot, key.Namespace, shoot})
	}
	return to
}

func (g *Graph) appendExisting(to []id, key Key) []id {
	if v, ok := g.ids[key]; ok && g.vertices[v].exists {
		return append(to, v)
	}
	return to
}

// appendIssuer appends the Shoot whose documents of a managed issuer are in a Secret with name "<project>--<uid>".
func (g *Graph) appendIssuer(to []id, name string) []id {
	i := strings.LastIndex(name, "--")
	if i < 0 {
		return to
	}
	shoot, ok := g.issuers[types.UID(name[i+2:])]
	if !ok {
		return to
	}
	namespace, ok := g.ids[Key{Kind: Namespace, Name: shoot.Namespace}]
	if ok && slices.ContainsFunc(g.vertices[namespace].in, func(l link) bool { return g.vertices[l.id].key == Key{Kind: Project, Name: name[:i]} }) {
		return g.appendExisting(to, shoot)
	}
	return to
}

// appendBootstrapToken appends the ManagedSeed and the Gardenlet that a bootstrap token is for, while they may use it.
func (g *Graph) appendBootstrapToken(to []id, name string) []id {
	token, ok := strings.CutPrefix(name, BootstrapTokenPrefix)
	if !ok {
		return to
	}
	for _, n := range g.tokens[token] {
		if v, ok := g.ids[Key{ManagedSeed, n.Namespace, n.Name}]; ok && g.facts[v].Bootstrap == BootstrapToken && g.mayBootstrap(v) {
			to = append(to, v)
		}
		if v, ok := g.ids[Key{Gardenlet, n.Namespace, n.Name}]; ok && g.vertices[v].exists && g.mayBootstrapAgain(v) {
			to = append(to, v)
		}
	}
	return to
}

// mayBootstrap reports whether the gardenlet of a ManagedSeed may get a client certificate: its first one, or a new one.
func (g *Graph) mayBootstrap(v id) bool {
	seed, ok := g.ids[Key{Kind: Seed, Name: g.vertices[v].key.Name}]
	return !ok || !g.vertices[seed].exists || g.mayBootstrapAgain(v)
}

// mayBootstrapAgain reports whether the client certificate of a gardenlet has expired, or an operator wants it renewed.
func (g *Graph) mayBootstrapAgain(v id) bool {
	seed, ok := g.ids[Key{Kind: Seed, Name: g.vertices[v].key.Name}]
	if !ok || !g.vertices[seed].exists {
		return false
	}
	expiration := g.facts[seed].Expiration
	return g.facts[v].Renew || !expiration.IsZero() && expiration.Before(g.clock.Now())
}

// Size returns how many vertices and edges the graph has.
func (g *Graph) Size() (vertices, edges int) {
	g.lock.RLock()
	defer g.lock.RUnlock()
	for _, v := range g.ids {
		edges += len(g.vertices[v].edges)
	}
	return len(g.ids), edges
}
