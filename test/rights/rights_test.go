package rights

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rule(apiGroup, resource, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{apiGroup}, Resources: []string{resource}, Verbs: strings.Fields(verbs)}
}

func event(user, verb, object, more string) string {
	return `{"stage":"ResponseComplete","verb":"` + verb + `","requestURI":"/some/path?q=1","user":{"username":"` + user + `","groups":["team"]},` +
		`"objectRef":` + object + `,"annotations":{"authorization.k8s.io/decision":"allow"}` + more + "}\n"
}

const agent = "system:serviceaccount:garden:agent"

// clusterWide grants rules to the ServiceAccount garden/agent everywhere.
func clusterWide(rules ...rbacv1.PolicyRule) RBAC {
	return RBAC{
		ClusterRoles: []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Rules: rules}},
		ClusterRoleBindings: []rbacv1.ClusterRoleBinding{{
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "agent"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "garden", Name: "agent"}},
		}},
	}
}

// inNamespaces grants rules to the ServiceAccount agent of each namespace, in that namespace.
func inNamespaces(granted rbacv1.PolicyRule, namespaces ...string) RBAC {
	rbac := RBAC{}
	for _, namespace := range namespaces {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "agent"}
		rbac.Roles = append(rbac.Roles, rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{granted}})
		rbac.RoleBindings = append(rbac.RoleBindings, rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "agent"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "agent"}},
		})
	}
	return rbac
}

func TestCompare(t *testing.T) {
	const (
		secret = `{"resource":"secrets","namespace":"a","name":"s","apiVersion":"v1"}`
		deploy = `{"resource":"deployments","apiGroup":"apps","subresource":"scale","namespace":"a","name":"d"}`
	)
	for name, tc := range map[string]struct {
		rbac RBAC
		log  string
		want string
	}{
		"what is used is no finding": {
			rbac: clusterWide(rule("", "secrets", "get")), log: event(agent, "get", secret, ""),
		},
		"an unused verb, resource and group": {
			rbac: clusterWide(rule("", "secrets", "create get"), rule("apps", "deployments", "get")), log: event(agent, "get", secret, ""),
			want: "granted and not used: ServiceAccount garden/agent (ClusterRole agent)\n  deployments.apps: get\n  secrets: create\n",
		},
		"what another identity uses does not count": {
			rbac: clusterWide(rule("", "secrets", "get")), log: event("system:serviceaccount:garden:other", "get", secret, ""),
			want: "granted and not used: ServiceAccount garden/agent (ClusterRole agent)\n  secrets: get\n",
		},
		"a subresource is not its resource": {
			rbac: clusterWide(rule("apps", "deployments", "patch"), rule("apps", "deployments/scale", "patch")), log: event(agent, "patch", deploy, ""),
			want: "granted and not used: ServiceAccount garden/agent (ClusterRole agent)\n  deployments.apps: patch\n",
		},
		"who watches may get and list, who patches may update": {
			rbac: clusterWide(rule("", "secrets", "get list watch patch update")),
			log:  event(agent, "watch", secret, "") + event(agent, "update", secret, ""),
		},
		"who gets one object may not list all": {
			rbac: clusterWide(rule("", "secrets", "get list")), log: event(agent, "get", secret, ""),
			want: "granted and not used: ServiceAccount garden/agent (ClusterRole agent)\n  secrets: list\n",
		},
		"an apply that creates the object uses create": {
			rbac: clusterWide(rule("", "secrets", "create patch")), log: event(agent, "patch", secret, `,"responseStatus":{"code":201}`),
		},
		"an object of another name": {
			rbac: clusterWide(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"other"}, Verbs: []string{"get"}}),
			log:  event(agent, "get", secret, ""),
			want: "granted and not used: ServiceAccount garden/agent (ClusterRole agent)\n  secrets: get\n",
		},
		"another namespace": {
			rbac: inNamespaces(rule("", "secrets", "get"), "b"), log: event("system:serviceaccount:b:agent", "get", secret, ""),
			want: "granted and not used: ServiceAccount b/agent (Role b/agent)\n  secrets: get\n",
		},
		"a use in one namespace of a class is one in all": {
			rbac: inNamespaces(rule("", "secrets", "get"), "shoot--a", "shoot--b"),
			log:  event("system:serviceaccount:shoot--c:agent", "get", strings.ReplaceAll(secret, `"a"`, `"shoot--c"`), ""),
		},
		"a wildcard is one, though it is used": {
			rbac: clusterWide(rule("", "*", "get")), log: event(agent, "get", secret, ""),
			want: "wildcard: ServiceAccount garden/agent (ClusterRole agent)\n  *: get\n",
		},
		"any subresource of a name": {
			rbac: clusterWide(rule("*", "*/scale", "patch")), log: event(agent, "patch", deploy, ""),
			want: "wildcard: ServiceAccount garden/agent (ClusterRole agent)\n  *.*/scale: patch\n",
		},
		"a path": {
			rbac: clusterWide(rbacv1.PolicyRule{NonResourceURLs: []string{"/some/*", "/metrics"}, Verbs: []string{"get"}}), log: event(agent, "get", "null", ""),
			want: "granted and not used: ServiceAccount garden/agent (ClusterRole agent)\n  /metrics: get\n",
		},
		"a refusal": {
			log:  strings.Replace(event(agent, "get", secret, ""), "allow", "forbid", 1),
			want: "tried and not granted: ServiceAccount garden/agent\n  secrets: get\n",
		},
		"a request that is granted at another time": {
			rbac: clusterWide(rule("", "secrets", "get")),
			log: event(agent, "get", secret, "") +
				strings.Replace(event(agent, "get", secret, ""), `"allow"`, `"forbid"`, 1),
		},
		"a refused escalation": {
			log: event(agent, "create", `{"resource":"roles","apiGroup":"rbac.authorization.k8s.io"}`,
				`,"responseStatus":{"code":403,"message":"user is attempting to grant RBAC permissions not currently held"}`),
			want: "tried and not granted: ServiceAccount garden/agent\n  roles.rbac.authorization.k8s.io: create\n",
		},
		"a refusal by admission is no right": {
			log: event(agent, "create", secret, `,"responseStatus":{"code":403,"message":"exceeded quota"}`),
		},
		"a group is used by its users": {
			rbac: RBAC{
				ClusterRoles: []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Rules: []rbacv1.PolicyRule{rule("", "secrets", "delete get")}}},
				RoleBindings: []rbacv1.RoleBinding{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "team"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "team"},
					Subjects: []rbacv1.Subject{{Kind: "Group", Name: "team"}},
				}},
			},
			log:  event("jane", "get", secret, ""),
			want: "granted and not used: Group team (ClusterRole team)\n  secrets: delete\n",
		},
		"what the kube-apiserver itself binds is ignored": {
			rbac: func() RBAC {
				rbac := clusterWide(rule("", "secrets", "get"))
				rbac.ClusterRoleBindings[0].Labels = map[string]string{bootstrapLabel: "rbac-defaults"}
				return rbac
			}(),
		},
		"an incomplete last line": {
			rbac: clusterWide(rule("", "secrets", "get")), log: event(agent, "get", secret, "") + `{"stage":"Resp`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			accepted, err := ParseAccepted([]byte(`classes: [{pattern: 'shoot--[a-z]+', name: 'shoot--*'}]`))
			if err != nil {
				t.Fatal(err)
			}
			usage := NewUsage()
			if err := usage.Read(strings.NewReader(tc.log)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, Report(Compare(tc.rbac, usage, accepted.Classes))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIgnoredUserAgents(t *testing.T) {
	usage := NewUsage("attack-*")
	for _, agent := range []string{"attack-1", "gardenlet"} {
		if err := usage.Read(strings.NewReader(event(agent, "get", `{"resource":"pods"}`, `,"userAgent":"`+agent+`"`))); err != nil {
			t.Fatal(err)
		}
	}
	if len(usage.uses) != 1 {
		t.Errorf("uses = %v", usage.uses)
	}
}

func TestFilter(t *testing.T) {
	accepted, err := ParseAccepted([]byte(`
unused:
- {identities: [ServiceAccount garden/*], objects: [secrets], verbs: [create, patch], reason: only after a failure}
- {identities: [ServiceAccount b/agent], reason: idle}
refused:
- {identities: [User *], objects: ["deployments.apps*"], reason: a test}
`))
	if err != nil {
		t.Fatal(err)
	}
	account := Identity{Kind: "ServiceAccount", Name: "garden/agent"}
	left, idle := accepted.Filter([]Finding{
		{Kind: Unused, Identity: account, Role: "Role a/b", Verb: "create", Object: "secrets"},
		{Kind: Unused, Identity: account, Role: "Role a/b", Verb: "delete", Object: "secrets"},
		{Kind: Unused, Identity: account, Role: "Role a/b", Verb: "create", Object: "secrets.example.com"},
		{Kind: Refused, Identity: Identity{Kind: "User", Name: "jane"}, Verb: "get", Object: "deployments.apps/scale"},
		{Kind: Refused, Identity: account, Verb: "get", Object: "deployments.apps"},
	})
	if diff := cmp.Diff("granted and not used: ServiceAccount garden/agent (Role a/b)\n  secrets: delete\n  secrets.example.com: create\n"+
		"tried and not granted: ServiceAccount garden/agent\n  deployments.apps: get\n", Report(left)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"granted and not used: ServiceAccount b/agent: idle"}, idle); diff != "" {
		t.Errorf("idle (-want +got):\n%s", diff)
	}
}

// Rotated logs are compressed.
func TestReadDir(t *testing.T) {
	dir := t.TempDir()
	if err := NewUsage().ReadDir(dir); err == nil {
		t.Error("a directory without logs is read")
	}
	if err := os.WriteFile(filepath.Join(dir, "audit.log"), []byte(event(agent, "get", `{"resource":"secrets"}`, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Create(filepath.Join(dir, "audit-2026-01-01T00-00-00.000.log.gz"))
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(packed)
	if _, err := w.Write([]byte(event(agent, "get", `{"resource":"pods"}`, ""))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	usage := NewUsage()
	if err := usage.ReadDir(dir); err != nil {
		t.Fatal(err)
	}
	if left := Compare(clusterWide(rule("", "pods", "get"), rule("", "secrets", "get")), usage, nil); len(left) > 0 {
		t.Errorf("findings:\n%s", Report(left))
	}
}

func TestParseAccepted(t *testing.T) {
	for name, file := range map[string]string{
		"no reason":         "unused: [{identities: ['*']}]",
		"no identity":       "refused: [{reason: why}]",
		"an unknown field":  "unused: [{identities: ['*'], reason: why, verb: get}]",
		"an invalid class":  "classes: [{pattern: '(', name: a}]",
		"an empty wildcard": "wildcards: [{identities: ['*'], reason: ' '}]",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseAccepted([]byte(file)); err == nil {
				t.Error("it is accepted")
			}
		})
	}
	for _, name := range []string{"runtime.yaml", "shoot.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseAccepted(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
