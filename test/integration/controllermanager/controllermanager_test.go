package controllermanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/env"
)

const quotas = `
controllers:
  plant: {syncPeriod: 1s}
  project:
    minimumLifetimeDays: 0 # so that new Projects can be stale
    quotas:
    - config:
        metadata: {labels: {size: small}}
        spec: {hard: {count/secrets: "10", count/configmaps: "20"}}
      projectSelector: {matchLabels: {quota: small}}
    - config:
        spec: {hard: {count/secrets: "1000"}}
      projectSelector: {matchLabels: {quota: large}}
`

// steady is how long no controller may be busy in a steady state.
const steady = 2 * time.Second

// The tests share a garden, as its start takes some seconds.
func TestControllers(t *testing.T) {
	g := newGarden(t, quotas)
	g.start(t)
	for _, tc := range []struct {
		name string
		test func(*testing.T, *garden)
	}{
		{"a project gets its namespace, RBAC objects and quota", testProject},
		{"a project adopts only a namespace with its labels", testAdoption},
		{"a profile stays while it is used", testCloudProfile},
		{"a namespaced profile follows its parent", testNamespacedCloudProfile},
		{"a binding stays while it is used, and the objects that it refers to are labelled", testBindings},
		{"the objects that a Shoot refers to stay", testReferences},
		{"a Shoot has its health in a label", testStatusLabel},
		{"conditions of a seed are copied to its Shoot", testConditions},
		{"the state of a Shoot stays while it is migrated", testShootState},
		{"a Shoot is maintained", testMaintenance},
		{"a project that nothing uses is stale, and deleted in the end", testStale},
		{"the quotas of a project are raised for what Gardener creates", testResourceQuota},
		{"a profile reports how its versions are classified", testClassification},
		{"a Shoot that moves to another seed reports whether that is ready", testMigrationConstraint},
		{"a Seed is remembered after its deletion", testRegisteredSeeds},
		{"a managed seed has the label of the seed of its Shoot", testManagedSeedLabel},
		{"a set of managed seeds has as many as it says", testManagedSeedSet},
		{"a Plant reports the health of its cluster", testPlant},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, g) })
	}
	t.Run("changes while the controllers do not run are handled after the restart", func(t *testing.T) { testRestart(t, g) })
	t.Run("nothing is written in a steady state, not even after a restart", func(t *testing.T) {
		g.settleFor(t, steady)
		before := len(g.running.writes.seen())
		g.settleFor(t, steady)
		if after := g.running.writes.seen(); len(after) > before {
			t.Errorf("settled controllers wrote:\n%s", strings.Join(after[before:], "\n"))
		}
		g.stop(t)
		g.start(t)
		g.settleFor(t, steady)
		if writes := g.running.writes.seen(); len(writes) > 0 {
			t.Errorf("restarted controllers wrote:\n%s", strings.Join(writes, "\n"))
		}
	})
	g.stop(t)
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func project(name string, change ...func(*corev1beta1.Project)) *corev1beta1.Project {
	p := &corev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"confirmation.gardener.cloud/deletion": "true"}},
		Spec:       corev1beta1.ProjectSpec{Owner: new(user("owner"))},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func awaitPhase(t *testing.T, g *garden, name string, phase corev1beta1.ProjectPhase) *corev1beta1.Project {
	t.Helper()
	return env.Await(t, g.client, project(name), func(p *corev1beta1.Project) error {
		if p.Status.Phase != phase || p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("phase is %q of generation %d, want %q of %d", p.Status.Phase, p.Status.ObservedGeneration, phase, p.Generation)
		}
		return nil
	})
}

func testProject(t *testing.T, g *garden) {
	g.create(t, project("dev", func(p *corev1beta1.Project) {
		p.Labels = map[string]string{"quota": "small"}
		p.Spec.Members = []corev1beta1.ProjectMember{
			{Subject: user("alice"), Role: "admin", Roles: []string{"extension:foo"}},
			{Subject: user("bob"), Role: "viewer", Roles: []string{"uam"}},
		}
	}))
	p := awaitPhase(t, g, "dev", corev1beta1.ProjectReady)
	name := *p.Spec.Namespace
	if !strings.HasPrefix(name, "garden-dev-") || len(name) != len("garden-dev-")+5 {
		t.Errorf("namespace is %q, want garden-dev- and five characters more", name)
	}
	ns := env.Await(t, g.client, namespace(name, nil), env.Exists)
	gotLabels, gotAnnotations := maps.Clone(ns.Labels), ns.Annotations
	delete(gotLabels, "kubernetes.io/metadata.name")
	if diff := cmp.Diff(map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"}, gotLabels) +
		cmp.Diff(map[string]string{
			"namespace.gardener.cloud/project": string(p.UID), "namespace.gardener.cloud/created-by-project-controller": "true",
		}, gotAnnotations); diff != "" {
		t.Errorf("labels and annotations of the namespace (-want +got):\n%s", diff)
	}
	owner := []metav1.OwnerReference{{
		APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project", Name: "dev", UID: p.UID, Controller: new(true), BlockOwnerDeletion: new(false),
	}}
	if diff := cmp.Diff(owner, ns.OwnerReferences); diff != "" {
		t.Errorf("owners of the namespace (-want +got):\n%s", diff)
	}

	t.Run("its members have the permissions of their roles", func(t *testing.T) {
		want := []string{
			"ClusterRole gardener.cloud:extension:project:dev:foo aggregates rbac.gardener.cloud/aggregate-to-extension-role=foo",
			"ClusterRole gardener.cloud:system:project-member:dev namespaces/" + name + " get, projects/dev get,patch,update,delete",
			"ClusterRole gardener.cloud:system:project-uam:dev projects/dev get,patch,update,manage-members",
			"ClusterRole gardener.cloud:system:project-viewer:dev namespaces/" + name + " get, projects/dev get",
			"ClusterRole gardener.cloud:system:project:dev namespaces/" + name + " get, projects/dev get,patch,update,delete,manage-members",
			"ClusterRoleBinding gardener.cloud:system:project-member:dev alice owner",
			"ClusterRoleBinding gardener.cloud:system:project-uam:dev bob",
			"ClusterRoleBinding gardener.cloud:system:project-viewer:dev bob",
			"ClusterRoleBinding gardener.cloud:system:project:dev owner",
			"RoleBinding gardener.cloud:extension:project:dev:foo alice",
			"RoleBinding gardener.cloud:system:project-member alice owner",
			"RoleBinding gardener.cloud:system:project-serviceaccountmanager owner",
			"RoleBinding gardener.cloud:system:project-viewer bob",
		}
		if diff := cmp.Diff(want, rbacOf(t, g, p)); diff != "" {
			t.Errorf("RBAC objects (-want +got):\n%s", diff)
		}
	})

	t.Run("a change of members changes their permissions", func(t *testing.T) {
		edit(t, g, p, func(p *corev1beta1.Project) {
			p.Spec.Members = []corev1beta1.ProjectMember{{Subject: user("bob"), Role: "admin"}}
		})
		env.AwaitGone(t, g.client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:extension:project:dev:foo"}})
		p = awaitPhase(t, g, "dev", corev1beta1.ProjectReady)
		got := slices.DeleteFunc(rbacOf(t, g, p), func(s string) bool { return strings.HasPrefix(s, "ClusterRole ") })
		want := []string{
			"ClusterRoleBinding gardener.cloud:system:project-member:dev bob owner",
			"ClusterRoleBinding gardener.cloud:system:project-uam:dev",
			"ClusterRoleBinding gardener.cloud:system:project-viewer:dev",
			"ClusterRoleBinding gardener.cloud:system:project:dev owner",
			"RoleBinding gardener.cloud:system:project-member bob owner",
			"RoleBinding gardener.cloud:system:project-serviceaccountmanager owner",
			"RoleBinding gardener.cloud:system:project-viewer",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("bindings (-want +got):\n%s", diff)
		}
	})

	t.Run("changes of its objects are reverted", func(t *testing.T) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:project-viewer:dev"}}
		edit(t, g, role, func(r *rbacv1.ClusterRole) {
			r.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
		})
		env.Await(t, g.client, role, func(r *rbacv1.ClusterRole) error {
			if len(r.Rules) != 2 {
				return fmt.Errorf("rules are %v", r.Rules)
			}
			return nil
		})
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "gardener.cloud:system:project-member"}}
		if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
			t.Fatal(err)
		}
		wrong := binding.DeepCopy()
		wrong.ResourceVersion, wrong.UID, wrong.RoleRef.Name = "", "", "cluster-admin"
		g.delete(t, binding)
		if err := g.client.Create(t.Context(), wrong); err == nil { // otherwise the controller was faster
			env.Await(t, g.client, binding, func(b *rbacv1.RoleBinding) error {
				if b.RoleRef.Name != binding.Name {
					return fmt.Errorf("it binds %q", b.RoleRef.Name)
				}
				return nil
			})
		}
		edit(t, g, ns, func(n *corev1.Namespace) { delete(n.Annotations, "namespace.gardener.cloud/project") })
		env.Await(t, g.client, ns, func(n *corev1.Namespace) error {
			if n.Annotations["namespace.gardener.cloud/project"] != string(p.UID) {
				return errors.New("the annotation is missing")
			}
			return nil
		})
	})

	t.Run("its quota has the limits of the configuration, unless an operator raised them", func(t *testing.T) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "gardener"}}
		limits := func(want string) {
			t.Helper()
			env.Await(t, g.client, quota, func(q *corev1.ResourceQuota) error {
				var got []string
				for _, resource := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
					limit := q.Spec.Hard[resource]
					got = append(got, string(resource)+"="+limit.String())
				}
				if got := strings.Join(got, " "); got != want || q.Labels["size"] != "small" {
					return fmt.Errorf("limits are %s, labels %v, want %s", got, q.Labels, want)
				}
				return nil
			})
		}
		limits("count/configmaps=20 count/secrets=10")
		edit(t, g, quota, func(q *corev1.ResourceQuota) {
			q.Labels = nil
			q.Spec.Hard = corev1.ResourceList{"count/secrets": resource.MustParse("50"), "pods": resource.MustParse("1")}
		})
		limits("count/configmaps=20 count/secrets=50")
	})

	t.Run("it is not deleted before its last Shoot, and its namespace is deleted with it", func(t *testing.T) {
		last := shoot(name, "last")
		g.create(t, last)
		g.delete(t, p)
		awaitPhase(t, g, "dev", corev1beta1.ProjectTerminating)
		awaitEvent(t, g, "dev", "NamespaceNotEmpty")
		if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.DeletionTimestamp != nil {
			t.Fatalf("namespace of a project with a Shoot: %v, deleted at %v", err, ns.DeletionTimestamp)
		}
		g.delete(t, last)
		g.finishNamespace(t, name)
		env.AwaitGone(t, g.client, p)
	})
}

// awaitEvent waits for an event about an object.
func awaitEvent(t *testing.T, g *garden, name, reason string) {
	t.Helper()
	env.AwaitList(t, g.client, func(events []*eventsv1.Event) error {
		if !slices.ContainsFunc(events, func(e *eventsv1.Event) bool { return e.Regarding.Name == name }) {
			return fmt.Errorf("no event %s about %q", reason, name)
		}
		return nil
	}, client.MatchingFields{"reason": reason})
}

// rbacOf describes the RBAC objects that a Project owns, one a line.
func rbacOf(t *testing.T, g *garden, p *corev1beta1.Project) []string {
	t.Helper()
	var roles rbacv1.ClusterRoleList
	var bindings rbacv1.ClusterRoleBindingList
	var roleBindings rbacv1.RoleBindingList
	if err := errors.Join(
		g.client.List(t.Context(), &roles), g.client.List(t.Context(), &bindings), g.client.List(t.Context(), &roleBindings, client.InNamespace(*p.Spec.Namespace)),
	); err != nil {
		t.Fatal(err)
	}
	var lines []string
	owned := func(obj client.Object, kind string, details []string) {
		if owner := metav1.GetControllerOf(obj); owner != nil && owner.UID == p.UID {
			separator := " "
			if kind == "ClusterRole" {
				separator = ", "
			}
			lines = append(lines, strings.TrimSpace(kind+" "+obj.GetName()+" "+strings.Join(details, separator)))
		}
	}
	names := func(subjects []rbacv1.Subject) (names []string) {
		for _, s := range subjects {
			names = append(names, s.Name)
		}
		return names
	}
	for i := range roles.Items {
		role, details := &roles.Items[i], []string(nil)
		for _, rule := range role.Rules {
			details = append(details, strings.Join(rule.Resources, ",")+"/"+strings.Join(rule.ResourceNames, ",")+" "+strings.Join(rule.Verbs, ","))
		}
		if role.AggregationRule != nil {
			details = append(details, "aggregates "+metav1.FormatLabelSelector(&role.AggregationRule.ClusterRoleSelectors[0]))
		}
		owned(role, "ClusterRole", details)
	}
	for i := range bindings.Items {
		owned(&bindings.Items[i], "ClusterRoleBinding", names(bindings.Items[i].Subjects))
	}
	for i := range roleBindings.Items {
		owned(&roleBindings.Items[i], "RoleBinding", names(roleBindings.Items[i].Subjects))
	}
	slices.Sort(lines)
	return lines
}
