package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// model answers as the graph should, from all objects and by walking every path.
type model map[Key]Object

// next returns where the edges from an object end.
func (m model) next(from Key, scope Scope) []Key {
	var to []Key
	for _, obj := range m {
		for _, e := range obj.Edges {
			if e.From == from && (e.Scope == Both || e.Scope == scope) {
				to = append(to, e.To)
			}
		}
		if m.named(from, obj) || scope == Shoots && obj.Key.Kind == Shoot && from == (Key{Lease, obj.Key.Namespace, SelfHostedPrefix + obj.Key.Name}) {
			to = append(to, obj.Key)
		}
		if from == clusterIdentity && (obj.Key.Kind == Seed && scope == Seeds || obj.Key.Kind == Shoot && scope == Shoots) {
			to = append(to, obj.Key)
		}
	}
	return to
}

// named reports whether an object belongs to another one by its name.
func (m model) named(key Key, owner Object) bool {
	is := func(kind Kind, namespace, name string) bool { return key == Key{kind, namespace, name} }
	namespace, name := owner.Key.Namespace, owner.Key.Name
	seed, registered := m[Key{Kind: Seed, Name: name}]
	again := registered && (owner.Renew || !seed.Expiration.IsZero() && seed.Expiration.Before(now))
	switch owner.Key.Kind {
	case Shoot:
		for _, suffix := range []string{".ca-cluster", ".ssh-keypair", ".ssh-keypair.old", ".monitoring"} {
			if is(Secret, namespace, name+suffix) && namespace != "kube-system" && namespace != "gardener-system-shoot-issuer" {
				return true
			}
		}
		for _, project := range m {
			if owner.ManagedIssuer != "" && project.Key.Kind == Project && is(Secret, "gardener-system-shoot-issuer", project.Key.Name+"--"+string(owner.ManagedIssuer)) {
				return slices.Contains(project.Edges, Edge{project.Key, Key{Kind: Namespace, Name: namespace}, Both})
			}
		}
		return is(InternalSecret, namespace, name+".ca-client") || is(ConfigMap, namespace, name+".ca-cluster") ||
			is(ConfigMap, namespace, name+".ca-kubelet") || is(ShootState, namespace, name)
	case Seed:
		return is(Namespace, "", "seed-"+name) || is(Lease, "gardener-system-seed-lease", name)
	case ManagedSeed:
		if registered && !again {
			return false
		}
		return owner.Bootstrap == BootstrapToken && is(Secret, "kube-system", BootstrapTokenName(namespace, name)) ||
			owner.Bootstrap == BootstrapServiceAccount &&
				(is(ServiceAccount, namespace, BootstrapServiceAccountName(name)) || is(ClusterRoleBinding, "", BootstrapBindingName(namespace, name)))
	case Gardenlet:
		return again && is(Secret, "kube-system", BootstrapTokenName(namespace, name))
	}
	return false
}

// leads walks from an object to a target. It goes on from a Seed only if it began there, or at what the Seed refers to.
func (m model) leads(from, target Key, scope Scope, far bool) bool {
	if from == target {
		return true
	}
	for _, to := range m.next(from, scope) {
		if to == target {
			return true
		}
		if to.Kind == Seed {
			if hanging := far && from != clusterIdentity && (from.Kind == Secret || from.Kind == ConfigMap || from.Kind == WorkloadIdentity || from.Kind == Namespace || from.Kind == Lease); !hanging {
				continue
			}
		}
		if m.leads(to, target, scope, false) {
			return true
		}
	}
	return false
}

func (m model) has(key Key) bool {
	if _, ok := m[key]; ok {
		return true
	}
	for _, obj := range m {
		for _, e := range obj.Edges {
			if e.From == key || e.To == key {
				return true
			}
		}
	}
	return false
}

// world is a random garden: few names, so that objects refer to each other, and to the same ones.
type world struct{ *rand.Rand }

func (w world) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w world) seed() Key      { return Key{Kind: Seed, Name: w.pick("s1", "s2", "s3", "s4")} }
func (w world) shoot() Key     { return Key{Shoot, w.pick("garden", "garden-a"), w.pick("s1", "s2", "x")} }
func (w world) namespace() Key { return Key{Kind: Namespace, Name: w.pick("garden", "garden-a")} }
func (w world) secret() Key {
	return Key{Secret, w.pick("garden", "garden-a"), w.pick("c1", "c2", "c3", "x.ca-cluster")}
}

func (w world) bucket() Key { return Key{Kind: BackupBucket, Name: w.pick("b1", "b2")} }

func (w world) some(n int, make func() Key, edge func(Key) Edge) []Edge {
	var edges []Edge
	for range w.IntN(n + 1) {
		edges = append(edges, edge(make()))
	}
	return edges
}

// object returns a random object, with the edges that its kind may have.
func (w world) object() Object {
	var obj Object
	into := func(from Key) Edge { return Edge{from, obj.Key, Both} }
	out := func(to Key) Edge { return Edge{obj.Key, to, Both} }
	add := func(edges []Edge) { obj.Edges = append(obj.Edges, edges...) }
	switch w.IntN(12) {
	case 0, 1, 2:
		obj.Key = w.shoot()
		add(w.some(2, w.seed, out))
		add([]Edge{into(Key{Kind: Namespace, Name: obj.Key.Namespace}), into(Key{Kind: CloudProfile, Name: w.pick("p1", "p2")})})
		add(w.some(1, func() Key { return Key{CredentialsBinding, obj.Key.Namespace, w.pick("c1", "c2")} }, into))
		add(w.some(2, w.secret, into))
		if w.IntN(2) == 0 {
			obj.ManagedIssuer = types.UID(obj.Key.Namespace + obj.Key.Name)
		}
	case 3:
		obj.Key = w.bucket()
		add(w.some(2, w.secret, into))
		add(w.some(1, w.seed, out))
		add(w.some(1, w.shoot, out))
	case 4:
		obj.Key = Key{BackupEntry, w.pick("garden", "garden-a"), w.pick("e1", "e2")}
		add(w.some(1, w.bucket, into))
		add(w.some(2, w.seed, out))
		add(w.some(1, w.shoot, func(to Key) Edge { return Edge{obj.Key, to, Scope(w.IntN(2) + 1)} }))
	case 5:
		obj.Key = Key{CredentialsBinding, w.pick("garden", "garden-a"), w.pick("c1", "c2")}
		add(w.some(1, w.secret, into))
	case 6:
		obj.Key = Key{Kind: Project, Name: w.pick("a", "garden")}
		add(w.some(1, w.namespace, out))
	case 7, 8:
		obj.Key = w.seed()
		add(w.some(3, w.secret, into))
		obj.Expiration = []time.Time{{}, now.Add(-time.Hour), now.Add(time.Hour)}[w.IntN(3)]
	case 9:
		obj.Key = Key{ManagedSeed, "garden", w.pick("s1", "s2", "s3")}
		seed := Key{Kind: Seed, Name: obj.Key.Name}
		add([]Edge{into(seed), out(seed)})
		add(w.some(1, w.shoot, out))
		add(w.some(2, w.secret, into))
		obj.Renew, obj.Bootstrap = w.IntN(2) == 0, Bootstrap(w.IntN(3))
	case 10:
		obj.Key = Key{Gardenlet, "garden", w.pick("s1", "s2")}
		add([]Edge{{obj.Key, Key{Kind: Seed, Name: obj.Key.Name}, Seeds}})
		add(w.some(1, w.secret, into))
		obj.Renew = w.IntN(2) == 0
	case 11:
		obj.Key = Key{ServiceAccount, "garden", BootstrapServiceAccountName(w.pick("s1", "s2"))}
		add(w.some(2, w.secret, func(from Key) Edge { return Edge{from, obj.Key, Seeds} }))
	}
	return obj
}

// questions returns the keys that are asked about: all that there are, and names that belong to others.
func questions() []Key {
	keys := []Key{clusterIdentity, {Kind: CloudProfile, Name: "p1"}, {Kind: Project, Name: "a"}, {Kind: Project, Name: "garden"}}
	for _, namespace := range []string{"garden", "garden-a"} {
		keys = append(keys, Key{Kind: Namespace, Name: namespace})
		for _, name := range []string{"s1", "s2", "x"} {
			keys = append(keys, Key{Shoot, namespace, name}, Key{Secret, namespace, name + ".ca-cluster"}, Key{Secret, namespace, name + ".ssh-keypair.old"},
				Key{InternalSecret, namespace, name + ".ca-client"}, Key{ConfigMap, namespace, name + ".ca-kubelet"}, Key{ShootState, namespace, name},
				Key{Secret, "gardener-system-shoot-issuer", "a--" + namespace + name}, Key{Lease, namespace, SelfHostedPrefix + name})
		}
		for _, name := range []string{"c1", "c2", "c3"} {
			keys = append(keys, Key{Secret, namespace, name}, Key{CredentialsBinding, namespace, name}, Key{BackupEntry, namespace, "e1"})
		}
	}
	for _, seed := range []string{"s1", "s2", "s3", "s4"} {
		keys = append(keys, Key{Kind: Seed, Name: seed}, Key{Kind: Namespace, Name: "seed-" + seed}, Key{Lease, "gardener-system-seed-lease", seed},
			Key{ManagedSeed, "garden", seed}, Key{Gardenlet, "garden", seed}, Key{Secret, "kube-system", BootstrapTokenName("garden", seed)},
			Key{ServiceAccount, "garden", BootstrapServiceAccountName(seed)}, Key{ClusterRoleBinding, "", BootstrapBindingName("garden", seed)})
	}
	return append(keys, Key{Kind: BackupBucket, Name: "b1"}, Key{Kind: BackupBucket, Name: "b2"})
}

// compare adds, changes and deletes random objects, and compares all answers with those of the model after each.
func compare(t *testing.T, seed uint64, steps int) {
	t.Helper()
	g, m, w := New(clocktesting.NewFakePassiveClock(now)), model{}, world{rand.New(rand.NewPCG(seed, 1))}
	var history []string
	for range steps {
		obj := w.object()
		if _, exists := m[obj.Key]; exists && w.IntN(3) == 0 {
			history = append(history, "delete "+obj.Key.String())
			g.Delete(obj.Key)
			delete(m, obj.Key)
		} else {
			history = append(history, fmt.Sprintf("set %v", obj))
			g.Set(obj)
			m[obj.Key] = obj
		}
		for _, key := range questions() {
			for _, name := range []string{"s1", "s2", "s3", "s4"} {
				target := Key{Kind: Seed, Name: name}
				if got, want := g.LeadsToSeed(key, name), m.has(target) && m.leads(key, target, Seeds, true); got != want {
					t.Fatalf("seed %d: %s leads to Seed %s: %t, want %t, after\n%v", seed, key, name, got, want, history)
				}
			}
			for _, name := range []types.NamespacedName{{Namespace: "garden", Name: "s1"}, {Namespace: "garden-a", Name: "x"}} {
				target := Key{Shoot, name.Namespace, name.Name}
				if got, want := g.LeadsToShoot(key, name), m.has(target) && m.leads(key, target, Shoots, true); got != want {
					t.Fatalf("seed %d: %s leads to Shoot %s: %t, want %t, after\n%v", seed, key, name, got, want, history)
				}
			}
		}
	}
	for key := range m {
		g.Delete(key)
	}
	if vertices, edges := g.Size(); vertices+edges+len(g.facts)+len(g.tokens)+len(g.issuers) > 0 || len(g.numbers) != int(g.seeds) {
		t.Fatalf("seed %d: %d vertices and %d edges are left without objects", seed, vertices, edges)
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(50) {
		compare(t, seed, 40)
	}
}

// FuzzModel searches for a history of objects after which the graph answers otherwise than the model.
func FuzzModel(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { compare(t, seed, 60) })
}
