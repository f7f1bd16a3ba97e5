package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/env"
)

// Members, viewers, gardenlets and other users may do what they need, and no more. No controller aggregates roles here, so the test does.
func testRoles(t *testing.T, e *env.Env) {
	ctx := t.Context()
	objects := gardenrbac.Objects(gardenrbac.Values{})
	for range 2 { // the second time nothing changes
		if err := kube.Apply(ctx, e.Client, "test", objects...); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range objects {
		if role, ok := object.(*rbacv1.ClusterRole); ok && role.AggregationRule != nil {
			bindAggregated(ctx, t, e, role, objects)
		}
	}
	type subject struct {
		name   string
		groups []string
	}
	var (
		member    = subject{"member@example.com", []string{"system:authenticated"}}
		viewer    = subject{"viewer@example.com", []string{"system:authenticated"}}
		manager   = subject{"manager@example.com", []string{"system:authenticated"}}
		seed      = subject{"gardener.cloud:system:seed:a", []string{"gardener.cloud:system:seeds", "system:authenticated"}}
		bootstrap = subject{"system:bootstrap:abcdef", []string{"system:bootstrappers", "system:authenticated"}}
		stranger  = subject{"stranger@example.com", []string{"system:authenticated"}}
		anonymous = subject{"system:anonymous", []string{"system:unauthenticated"}}
	)
	may := func(ctx context.Context, s subject, action, namespace string) bool {
		t.Helper()
		verb, resource, _ := strings.Cut(action, " ")
		resource, subresource, _ := strings.Cut(resource, "/")
		resource, group, _ := strings.Cut(resource, ".") // both may be left out
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: s.name, Groups: s.groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace,
			},
		}}
		if err := e.Client.Create(ctx, review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	eventually(ctx, t, func() error {
		if !may(ctx, manager, "create serviceaccounts/token", devNamespace) {
			return fmt.Errorf("the last role is not seen yet")
		}
		return nil
	}, func(err error) bool { return err == nil })

	// The group follows the resource: shoots.core.gardener.cloud/adminkubeconfig.
	const core, security = ".core.gardener.cloud", ".security.gardener.cloud"
	for _, tc := range []struct {
		subject   subject
		namespace string
		yes, no   []string
	}{
		{
			member, devNamespace,
			[]string{
				"create shoots" + core, "delete shoots" + core, "create shoots" + core + "/adminkubeconfig", "create shoots" + core + "/viewerkubeconfig",
				"create secrets", "patch configmaps", "create credentialsbindings" + security, "create secretbindings" + core, "create quotas" + core,
				"create workloadidentities" + security, "create bastions.operations.gardener.cloud", "update namespacedcloudprofiles" + core,
				"create rolebindings.rbac.authorization.k8s.io", "get serviceaccounts", "create openidconnectpresets.settings.gardener.cloud",
			},
			[]string{
				"update shoots" + core + "/binding", "update shoots" + core + "/status", "get internalsecrets" + core, "update shoots" + core + "/finalizers",
				"get shootstates" + core, "create serviceaccounts", "create workloadidentities" + security + "/token", "get backupentries" + core,
				"modify-spec-kubernetes namespacedcloudprofiles" + core, "mark-self-hosted shoots" + core,
			},
		},
		{member, "garden", nil, []string{"get shoots" + core, "list secrets", "create shoots" + core + "/adminkubeconfig"}},
		{
			viewer, devNamespace,
			[]string{"list shoots" + core, "create shoots" + core + "/viewerkubeconfig", "get configmaps", "get credentialsbindings" + security},
			[]string{"get secrets", "update shoots" + core, "create shoots" + core + "/adminkubeconfig", "create configmaps", "get internalsecrets" + core},
		},
		{
			manager, devNamespace,
			[]string{"create serviceaccounts", "create serviceaccounts/token"},
			[]string{"get shoots" + core, "get secrets"},
		},
		{
			seed, "garden",
			[]string{
				"list shoots" + core, "patch shoots" + core + "/status", "create shootstates" + core,
				"create workloadidentities" + security + "/token", "create leases.coordination.k8s.io", "get configmaps", "create backupentries" + core,
				"update managedseeds.seedmanagement.gardener.cloud/status", "update shoots" + core + "/finalizers", "patch workloadidentities" + security,
			},
			[]string{
				"create shoots" + core, "delete shoots" + core, "create projects" + core, "update shoots" + core + "/binding", "create clusterroles.rbac.authorization.k8s.io",
				"get secrets", "create secrets", "get internalsecrets" + core, "create serviceaccounts", "create serviceaccounts/token",
			},
		},
		{
			bootstrap, "",
			[]string{"create certificatesigningrequests.certificates.k8s.io", "create certificatesigningrequests.certificates.k8s.io/seedclient"},
			[]string{"patch seeds" + core, "get shoots" + core, "update certificatesigningrequests.certificates.k8s.io/approval"},
		},
		{
			stranger, "",
			[]string{"list cloudprofiles" + core, "get seeds" + core, "get exposureclasses" + core},
			[]string{"list projects" + core, "create projects" + core, "list shoots" + core, "update seeds" + core, "get internalsecrets" + core},
		},
		{anonymous, "", nil, []string{"list cloudprofiles" + core, "get seeds" + core}},
	} {
		for _, action := range tc.yes {
			if !may(ctx, tc.subject, action, tc.namespace) {
				t.Errorf("%s may not %s in %q", tc.subject.name, action, tc.namespace)
			}
		}
		for _, action := range tc.no {
			if may(ctx, tc.subject, action, tc.namespace) {
				t.Errorf("%s may %s in %q", tc.subject.name, action, tc.namespace)
			}
		}
	}
	anyUser := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: stranger.name, Groups: stranger.groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "get", Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: "cluster-identity",
		},
	}}
	if err := e.Client.Create(ctx, anyUser); err != nil || !anyUser.Status.Allowed {
		t.Errorf("a stranger may not read the identity of the garden: %v", err)
	}
}

// bindAggregated collects the rules of an aggregated role, and binds it in the namespace of the project, as controllers do.
func bindAggregated(ctx context.Context, t *testing.T, e *env.Env, role *rbacv1.ClusterRole, objects []client.Object) {
	t.Helper()
	users := map[string]string{
		"gardener.cloud:system:project-member": "member@example.com", "gardener.cloud:system:project-viewer": "viewer@example.com",
		"gardener.cloud:system:project-serviceaccountmanager": "manager@example.com",
	}
	user, ok := users[role.Name]
	if !ok {
		t.Fatalf("%s is aggregated", role.Name)
	}
	complete := role.DeepCopy()
	for _, object := range objects {
		part, ok := object.(*rbacv1.ClusterRole)
		for _, selector := range role.AggregationRule.ClusterRoleSelectors {
			for key, value := range selector.MatchLabels {
				if ok && part.Labels[key] == value {
					complete.Rules = append(complete.Rules, part.Rules...)
				}
			}
		}
	}
	if len(complete.Rules) == 0 {
		t.Errorf("%s selects no role", role.Name)
	}
	patch := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}}
	if err := e.Client.Get(ctx, client.ObjectKeyFromObject(patch), patch); err != nil {
		t.Fatal(err)
	}
	patch.Rules = complete.Rules
	if err := e.Client.Update(ctx, patch); err != nil {
		t.Fatal(err)
	}
	create(t, e, &rbacv1.RoleBinding{ //nolint:contextcheck // it takes that of t
		ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}
