// Package tenant tests what the members of a Project may do, with the real roles, project controller and API servers.
package tenant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/customverbauthorizer"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/controllermanager/project"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const (
	projectName, namespace           = "prod", "garden-prod"
	otherProjectName, otherNamespace = "other", "garden-other"
)

type garden struct {
	*env.Env
	c client.WithWatch
}

func TestRoles(t *testing.T) {
	e := env.Start(t, env.Lenient(customverbauthorizer.Name))
	e.Config.QPS = -1
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	g := &garden{Env: e, c: c}
	g.startProjects(t)
	t.Run("matrix", g.testMatrix)
	t.Run("requests", g.testRequests)
}

// user is the name of the member with a role.
func user(role string) string { return strings.ReplaceAll(role, ":", "-") + "@example.com" }

func subject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// startProjects creates the roles and two Projects, the first with a member for each role, and waits until the controller has bound the roles.
func (g *garden) startProjects(t *testing.T) {
	t.Helper()
	if err := kube.Apply(t.Context(), g.c, "test", append(gardenrbac.Objects(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "example.com:widgets", Labels: map[string]string{"rbac.gardener.cloud/aggregate-to-extension-role": "widgets"}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"example.com"}, Resources: []string{"widgets"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
		}},
	})...); err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(g.Config, manager.Options{
		Scheme: g.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err == nil {
		err = references.Add(t.Context(), mgr.GetFieldIndexer())
	}
	if err == nil {
		err = project.Add(mgr, project.Values{ConcurrentSyncs: 2})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the controller ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })

	for name, ns := range map[string]string{projectName: namespace, otherProjectName: otherNamespace} {
		p := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.ProjectSpec{Namespace: &ns, Owner: new(subject("someone@example.com"))}}
		if name == projectName {
			p.Spec.Owner = new(subject(user("owner")))
			for _, role := range roles[1:] {
				p.Spec.Members = append(p.Spec.Members, corev1beta1.ProjectMember{Subject: subject(user(role)), Role: role})
			}
		}
		if err := g.c.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		env.Await(t, g.c, p, func(p *corev1beta1.Project) error {
			if p.Status.Phase != corev1beta1.ProjectReady {
				return fmt.Errorf("phase is %q", p.Status.Phase)
			}
			return nil
		})
	}
	g.aggregate(t)
	for _, last := range []cell{
		{role: "serviceaccountmanager", resource: "serviceaccounts/token", verb: "create"},
		{role: "extension:widgets", resource: "widgets.example.com", verb: "get"},
		{role: "admin", resource: "secrets", verb: "get"},
		{role: "viewer", resource: "configmaps", verb: "get"},
		{role: "uam", resource: "projects.core.gardener.cloud", scope: own, verb: "manage-members"},
	} {
		env.AwaitRequest(t, func(ctx context.Context) error {
			allowed, err := g.may(ctx, last, namespace)
			if err == nil && !allowed {
				err = fmt.Errorf("%+v is not allowed yet", last)
			}
			return err
		})
	}
}

// aggregate writes the rules of aggregated roles, as the kube-controller-manager does.
func (g *garden) aggregate(t *testing.T) {
	t.Helper()
	list := &rbacv1.ClusterRoleList{}
	if err := g.c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		role := &list.Items[i]
		if role.AggregationRule == nil || !strings.HasPrefix(role.Name, "gardener.cloud:") {
			continue
		}
		env.Edit(t, g.c, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}}, func(edited *rbacv1.ClusterRole) {
			edited.Rules = nil
			for _, selector := range role.AggregationRule.ClusterRoleSelectors {
				for _, part := range list.Items {
					if labels.SelectorFromSet(selector.MatchLabels).Matches(labels.Set(part.Labels)) {
						edited.Rules = append(edited.Rules, part.Rules...)
					}
				}
			}
		})
	}
}

// may asks the kube-apiserver. The object is that of the Project if the scope is its own.
func (g *garden) may(ctx context.Context, c cell, in string) (bool, error) {
	resource, group, _ := strings.Cut(c.resource, ".")
	resource, subresource, _ := strings.Cut(resource, "/")
	attributes := &authorizationv1.ResourceAttributes{Verb: c.verb, Group: group, Resource: resource, Subresource: subresource, Namespace: in}
	if c.scope == own {
		attributes.Namespace, attributes.Name = "", map[string]string{"projects": projectName, "namespaces": namespace}[resource]
		if resource == "namespaces" {
			attributes.Namespace = namespace // as requests for Namespaces have it
		}
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user(c.role), Groups: []string{"system:authenticated"}, ResourceAttributes: attributes,
	}}
	err := g.c.Create(ctx, review)
	return review.Status.Allowed, err
}

// testMatrix asks for each role, each resource that is served, and each verb: in the namespace of the Project, in that of another one, in the
// namespace garden, and in all of them.
func (g *garden) testMatrix(t *testing.T) {
	want := expected(t)
	used := map[cell]bool{}
	var lock sync.Mutex
	check := func(ctx context.Context, c cell, in string, allowed bool) {
		got, err := g.may(ctx, c, in)
		lock.Lock()
		defer lock.Unlock()
		switch {
		case err != nil:
			t.Errorf("%+v in %q: %v", c, in, err)
		case got && !allowed:
			t.Errorf("%s may %s %s %s in %q", c.role, c.verb, c.resource, c.scope, in)
		case !got && allowed:
			t.Errorf("%s may not %s %s %s in %q", c.role, c.verb, c.resource, c.scope, in)
		}
		if allowed {
			used[c] = true
		}
	}
	guards := []string{
		"manage-members", "modify-spec-tolerations-whitelist", "modify-spec-kubernetes", "modify-spec-machineimages", "modify-spec-providerconfig",
		"raise-spec-limits", "mark-self-hosted", "bind", "escalate", "impersonate", "approve", "sign", "attest",
	}
	verbs := slices.Concat(letters['r'], letters['w'], guards)
	work := make(chan func(), 100)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for do := range work {
				do()
			}
		})
	}
	for resource, namespaced := range g.resources(t) {
		for _, role := range roles {
			for _, verb := range verbs {
				work <- func() {
					all := cell{role, resource, everywhere, verb}
					if namespaced {
						here := cell{role, resource, inNamespace, verb}
						check(t.Context(), here, namespace, want[here])
						check(t.Context(), all, otherNamespace, false)
						check(t.Context(), all, "garden", false)
					}
					check(t.Context(), all, "", want[all])
					if resource == "projects.core.gardener.cloud" || resource == "namespaces" {
						mine := cell{role, resource, own, verb}
						check(t.Context(), mine, "", want[mine])
					}
				}
			}
		}
	}
	close(work)
	workers.Wait()
	for c := range want {
		if !used[c] {
			t.Errorf("%s is not served", c.resource)
		}
	}
}

// resources are those that the API servers serve, with their groups, and whether they are in namespaces.
func (g *garden) resources(t *testing.T) map[string]bool {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(g.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{
		"widgets.example.com": true, // of an extension
		// What signs and approves certificates is asked for by the name of the signer, and users are impersonated.
		"signers.certificates.k8s.io": false, "certificatesigningrequests/seedclient.certificates.k8s.io": false,
		"certificatesigningrequests/shootclient.certificates.k8s.io": false, "users": false, "groups": false,
	}
	for _, list := range lists {
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			name := r.Name
			if grouped {
				name += "." + group
			}
			served[name] = r.Namespaced
		}
	}
	return served
}

// testRequests makes requests, as what a member may do also depends on admission, and on what the member has already.
func (g *garden) testRequests(t *testing.T) {
	here := metav1.ObjectMeta{Namespace: namespace, GenerateName: "a-"}
	bind := func(role string, subjects ...rbacv1.Subject) client.Object {
		return &rbacv1.RoleBinding{ObjectMeta: here, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: subjects}
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "robot"}
	grant := func(resource string, verbs ...string) client.Object {
		return &rbacv1.Role{ObjectMeta: here, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}}}
	}
	robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot"}}
	if err := g.c.Create(t.Context(), robot); err != nil {
		t.Fatal(err)
	}
	create := func(object client.Object) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		}
	}
	list := func(list client.ObjectList, in string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error { return c.List(ctx, list, client.InNamespace(in)) }
	}
	changeProject := func(change func(*corev1beta1.Project)) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			p := &corev1beta1.Project{}
			if err := g.c.Get(ctx, client.ObjectKey{Name: projectName}, p); err != nil {
				return err
			}
			before := p.DeepCopy()
			change(p)
			return c.Patch(ctx, p, client.MergeFrom(before), client.DryRunAll)
		}
	}
	describe := changeProject(func(p *corev1beta1.Project) { p.Spec.Description = new("ours") })
	invite := changeProject(func(p *corev1beta1.Project) {
		p.Spec.Members = append(p.Spec.Members, corev1beta1.ProjectMember{Subject: subject("new@example.com"), Role: "viewer"})
	})
	employ := changeProject(func(p *corev1beta1.Project) {
		p.Spec.Members = append(p.Spec.Members, corev1beta1.ProjectMember{Subject: account, Role: "viewer"})
	})
	whitelist := changeProject(func(p *corev1beta1.Project) {
		p.Spec.Tolerations = &corev1beta1.ProjectTolerations{Whitelist: []corev1beta1.Toleration{{Key: "any"}}}
	})
	takeOver := changeProject(func(p *corev1beta1.Project) { p.Spec.Owner = new(subject(user("admin"))) })
	token := func(ctx context.Context, c client.Client) error {
		return c.SubResource("token").Create(ctx, robot.DeepCopy(), &authenticationv1.TokenRequest{})
	}
	shoot := builder.Shoot("a", builder.In(namespace), builder.Workers(1))
	elsewhere := builder.Shoot("a", builder.In(otherNamespace), builder.Workers(1))
	profile := &corev1beta1.NamespacedCloudProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}, Spec: corev1beta1.NamespacedCloudProfileSpec{
		Parent:     corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
		Kubernetes: &corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{{Version: "1.36.1", ExpirationDate: new(metav1.Now())}}},
	}}
	const members, managers = "gardener.cloud:system:project-member", "gardener.cloud:system:project-serviceaccountmanager"
	for _, tc := range []struct {
		what    string
		do      func(context.Context, client.Client) error
		allowed []string // the roles
	}{
		{"create a Shoot", create(shoot), []string{"owner", "admin"}},
		{"create a Shoot in another project", create(elsewhere), nil},
		{"create a Secret", create(&corev1.Secret{ObjectMeta: here}), []string{"owner", "admin"}},
		{"list Secrets", list(&corev1.SecretList{}, namespace), []string{"owner", "admin"}},
		{"list Secrets of the garden", list(&corev1.SecretList{}, "garden"), nil},
		{"list Secrets of another project", list(&corev1.SecretList{}, otherNamespace), nil},
		{"list ConfigMaps", list(&corev1.ConfigMapList{}, namespace), []string{"owner", "admin", "viewer"}},
		{"list all Shoots", list(&corev1beta1.ShootList{}, ""), nil},
		{"list Shoots", list(&corev1beta1.ShootList{}, namespace), []string{"owner", "admin", "viewer"}},
		{"list Projects", list(&corev1beta1.ProjectList{}, ""), nil},
		{"list Seeds", list(&corev1beta1.SeedList{}, ""), roles},
		{"create a ServiceAccount", create(&corev1.ServiceAccount{ObjectMeta: here}), []string{"owner", "serviceaccountmanager"}},
		{"request a token", token, []string{"owner", "serviceaccountmanager"}},
		{"create a Namespace", create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-more"}}), nil},
		{"create a Project", create(&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "more"}}), nil},
		{"create an InternalSecret", create(&corev1beta1.InternalSecret{ObjectMeta: here}), nil},
		{"create a CertificateSigningRequest", create(&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: []byte("a"), SignerName: "example.com/a", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		}}), nil},
		{"choose the versions of a NamespacedCloudProfile", create(profile), nil},

		// No user may grant more rights than their own.
		{"bind the role of members", create(bind(members, account)), []string{"owner", "admin"}},
		{"bind the role of managers of ServiceAccounts", create(bind(managers, subject(user("admin")))), []string{"owner"}},
		{"bind the role of administrators", create(bind("cluster-admin", account)), nil},
		{"create a role for ConfigMaps", create(grant("configmaps", "get")), []string{"owner", "admin"}},
		{"create a role for ServiceAccounts", create(grant("serviceaccounts", "create")), []string{"owner"}},
		{"create a role for pods", create(grant("pods", "get")), nil},
		{"create a role for everything", create(grant("*", "*")), nil},

		{"describe the Project", describe, []string{"owner", "admin", "uam"}},
		{"add a user to the Project", invite, []string{"owner", "uam"}},
		{"add a ServiceAccount to the Project", employ, []string{"owner", "admin", "uam"}},
		{"take over the Project", takeOver, []string{"owner", "uam"}},
		{"tolerate any taint", whitelist, nil},
	} {
		for _, role := range roles {
			t.Run(tc.what+"/"+role, func(t *testing.T) {
				as := rest.CopyConfig(g.Config)
				as.Impersonate = rest.ImpersonationConfig{UserName: user(role), Groups: []string{"system:authenticated"}}
				c, err := client.New(as, client.Options{Scheme: g.Scheme, Mapper: g.c.RESTMapper()})
				if err != nil {
					t.Fatal(err)
				}
				err = tc.do(t.Context(), c)
				switch allowed := slices.Contains(tc.allowed, role); {
				case allowed && err != nil:
					t.Errorf("refused: %v", err)
				case !allowed && !apierrors.IsForbidden(err):
					t.Errorf("not forbidden: %v", err)
				}
			})
		}
	}
}
