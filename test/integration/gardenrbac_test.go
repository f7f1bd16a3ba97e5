package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/component/gardenercontrollermanager"
	"gardener.cloud/gardener/internal/component/gardenerinfo"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/gardenerscheduler"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/env"
)

// Members, viewers, gardenlets and other users may do what they need, and no more. No controller aggregates roles here, so the test does.
func testRoles(t *testing.T, e *env.Env) {
	ctx := t.Context()
	objects := gardenrbac.Objects()
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
		operator  = subject{"operator@example.com", []string{"system:authenticated"}}
		auditor   = subject{"auditor@example.com", []string{"system:authenticated"}}
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
				"modify-spec-kubernetes namespacedcloudprofiles" + core, "raise-spec-limits namespacedcloudprofiles" + core, "mark-self-hosted shoots" + core,
			},
		},
		{member, "garden", nil, []string{"get shoots" + core, "list secrets", "create shoots" + core + "/adminkubeconfig"}},
		{
			viewer, devNamespace,
			[]string{"list shoots" + core, "create shoots" + core + "/viewerkubeconfig", "get configmaps", "get credentialsbindings" + security},
			[]string{"get secrets", "update shoots" + core, "create shoots" + core + "/adminkubeconfig", "create configmaps", "get internalsecrets" + core},
		},
		{
			operator, devNamespace,
			[]string{
				"update shoots" + core, "get internalsecrets" + core, "patch seeds" + core, "get secrets", "create rolebindings.rbac.authorization.k8s.io",
				"create terminals.dashboard.gardener.cloud", "create customresourcedefinitions.apiextensions.k8s.io", "list events.events.k8s.io",
				"delete certificatesigningrequests.certificates.k8s.io",
			},
			[]string{"create pods", "update certificatesigningrequests.certificates.k8s.io/approval", "create workloadidentities" + security + "/token"},
		},
		{
			auditor, devNamespace,
			[]string{
				"list shoots" + core, "get managedseeds.seedmanagement.gardener.cloud", "get configmaps", "list terminals.dashboard.gardener.cloud",
				"list events.events.k8s.io", "get apiservices.apiregistration.k8s.io",
			},
			[]string{
				"get internalsecrets" + core, "get secrets", "update shoots" + core, "create shoots" + core + "/adminkubeconfig",
				"create terminals.dashboard.gardener.cloud",
			},
		},
		{
			manager, devNamespace,
			[]string{"create serviceaccounts", "create serviceaccounts/token"},
			[]string{"get shoots" + core, "get secrets"},
		},
		{
			// The authorizer of gardener-admission-controller, which does not run here, allows more.
			seed, "garden",
			[]string{"list cloudprofiles" + core, "get seeds" + core},
			[]string{
				"list shoots" + core, "patch shoots" + core + "/status", "create shootstates" + core, "create leases.coordination.k8s.io", "get configmaps",
				"create secrets", "get internalsecrets" + core, "create serviceaccounts/token", "create certificatesigningrequests.certificates.k8s.io/seedclient",
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
	t.Run("objects of a virtual garden are valid", func(t *testing.T) { testVirtualGarden(t, e) })
	t.Run("gardener-controller-manager grants only roles of projects and extensions", func(t *testing.T) { testControllerManagerGrants(t, e) })
}

// A kube-apiserver accepts everything that components of Gardener have in a virtual garden, and in the namespace beside its control plane.
func testVirtualGarden(t *testing.T, e *env.Env) {
	virtual, namespace, image := &gardenerprocess.Virtual{GenericKubeconfig: "generic"}, "garden", "gardener"
	admissionController := gardeneradmissioncontroller.Values{
		Namespace: namespace, Image: image, Replicas: 2, Certificate: "tls", Virtual: virtual, CABundle: e.Config.CAData,
		Config: gardeneradmissioncontroller.Configuration(&operatorv1alpha1.GardenerAdmissionControllerConfig{
			ResourceAdmissionConfiguration: &operatorv1alpha1.ResourceAdmissionConfiguration{Limits: []operatorv1alpha1.ResourceLimit{{
				APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"*"}, Resources: []string{"shoots"}, Size: new(resource.MustParse("100k")),
			}}},
		}),
	}
	controllerManager := gardenercontrollermanager.Values{Namespace: namespace, Image: image, Replicas: 2, Virtual: virtual}
	scheduler := gardenerscheduler.Values{Namespace: namespace, Image: image, Replicas: 2, Virtual: virtual}
	apiServer := gardenerapiserver.Values{
		Namespace: namespace, Image: image, Replicas: 2, EtcdSecret: "etcd", Certificate: "tls", CA: e.Config.CAData,
		Virtual: &gardenerapiserver.Virtual{Virtual: *virtual, ClusterIP: netip.MustParseAddr("10.2.0.7"), KubernetesVersion: "1.33.0"},
	}
	apiServerTarget, err := gardenerapiserver.TargetObjects(apiServer)
	objects := slices.Concat(gardenrbac.Virtual(), apiServerTarget, gardeneradmissioncontroller.TargetObjects(admissionController),
		gardenercontrollermanager.TargetObjects(controllerManager), gardenerscheduler.TargetObjects(scheduler))
	for _, render := range []func() ([]client.Object, error){
		func() ([]client.Object, error) { return gardenerapiserver.Objects(apiServer) },
		func() ([]client.Object, error) { return gardeneradmissioncontroller.Objects(admissionController) },
		func() ([]client.Object, error) { return gardenercontrollermanager.Objects(controllerManager) },
		func() ([]client.Object, error) { return gardenerscheduler.Objects(scheduler) },
		func() ([]client.Object, error) {
			info, err := gardenerinfo.ConfigMap(gardenerinfo.APIServer{Version: "v1"})
			return []client.Object{info}, err
		},
	} {
		rendered, failed := render()
		objects, err = append(objects, rendered...), errors.Join(err, failed)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := kube.Apply(t.Context(), client.NewDryRunClient(e.Client), "test", object); err != nil {
			t.Errorf("%T %s: %v", object, object.GetName(), err)
		}
	}
}

// RBAC allows gardener-controller-manager to bind and escalate all roles, as it cannot describe their names. Policies restrict it.
func testControllerManagerGrants(t *testing.T, e *env.Env) {
	const user, role = "system:serviceaccount:garden:gardener-controller-manager", "gardener.cloud:system:controller-manager"
	create(t, e, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	manager := client.NewDryRunClient(as(t, e, user, "system:serviceaccounts", "system:serviceaccounts:garden", "system:authenticated"))
	clusterRole := func(name string, rules ...rbacv1.PolicyRule) client.Object {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	}
	aggregated := func(selector metav1.LabelSelector) client.Object {
		return &rbacv1.ClusterRole{
			ObjectMeta:      metav1.ObjectMeta{Name: "gardener.cloud:extension:project:dev:role"},
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{selector}},
		}
	}
	account := func(namespace string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "extension"}
	}
	everywhere := func(role string, subject rbacv1.Subject) client.Object {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{subject},
		}
	}
	inProject := func(role string) client.Object {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: "test"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{account("seed-a")},
		}
	}
	project := rbacv1.PolicyRule{APIGroups: []string{"core.gardener.cloud"}, Resources: []string{"projects"}, ResourceNames: []string{"dev"}, Verbs: []string{"get"}}
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	eventually(t.Context(), t, func() error { return manager.Create(t.Context(), clusterRole("any", secrets)) }, apierrors.IsForbidden) // policies are seen
	eventually(t.Context(), t, func() error { return manager.Create(t.Context(), inProject("cluster-admin")) }, apierrors.IsForbidden)
	eventually(t.Context(), t, func() error { return manager.Create(t.Context(), everywhere("cluster-admin", account("seed-a"))) }, apierrors.IsForbidden)
	for name, tc := range map[string]struct {
		object client.Object
		denied bool
	}{
		"the role of a project":             {object: clusterRole("gardener.cloud:system:project-member:dev", project)},
		"the role of a project, with more":  {object: clusterRole("gardener.cloud:system:project-member:dev", project, secrets), denied: true},
		"a role of another name":            {object: clusterRole("mine", project), denied: true},
		"a role with paths":                 {object: clusterRole("gardener.cloud:system:project-member:dev", rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}), denied: true},
		"roles of an extension":             {object: aggregated(metav1.LabelSelector{MatchLabels: map[string]string{constants.AggregateToExtensionRole: "role"}})},
		"roles of Kubernetes":               {object: aggregated(metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}}), denied: true},
		"all roles":                         {object: aggregated(metav1.LabelSelector{}), denied: true},
		"members in their project":          {object: inProject("gardener.cloud:system:project-member")},
		"administrators in a project":       {object: inProject("admin"), denied: true},
		"an extension":                      {object: everywhere("extensions.example.com:permissions", account("seed-a"))},
		"an extension as administrator":     {object: everywhere("cluster-admin", account("seed-a")), denied: true},
		"an extension as operator":          {object: everywhere("gardener.cloud:admin", account("seed-a")), denied: true},
		"itself like an extension":          {object: everywhere("extensions.example.com:permissions", account("garden")), denied: true},
		"a user like an extension":          {object: everywhere("extensions.example.com:permissions", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}), denied: true},
		"the project role for its members":  {object: everywhere("gardener.cloud:system:project-member:dev", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"})},
		"an extension's role for a project": {object: inProject("gardener.cloud:extension:project:dev:role")},
	} {
		t.Run(name, func(t *testing.T) {
			err := manager.Create(t.Context(), tc.object)
			if denied := apierrors.IsForbidden(err) || apierrors.IsInvalid(err); denied != tc.denied || err != nil && !denied {
				t.Errorf("Create() = %v, want it denied: %t", err, tc.denied)
			}
		})
	}
}

// bindAggregated collects the rules of an aggregated role, and binds it in the namespace of the project, as controllers do.
func bindAggregated(ctx context.Context, t *testing.T, e *env.Env, role *rbacv1.ClusterRole, objects []client.Object) {
	t.Helper()
	users := map[string]string{
		"gardener.cloud:system:project-member": "member@example.com", "gardener.cloud:system:project-viewer": "viewer@example.com",
		"gardener.cloud:system:project-serviceaccountmanager": "manager@example.com",
		"gardener.cloud:system:administrators":                "operator@example.com",
		"gardener.cloud:system:viewers":                       "auditor@example.com",
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
