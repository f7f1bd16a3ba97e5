// Package gardenrbac renders the roles of a garden cluster: those of Gardener's components, operators, and the members of projects.
//
// The roles of members are aggregated: roles with a label such as rbac.gardener.cloud/aggregate-to-project-member are added to
// them, so that operators and extensions can grant more. Roles of components are bound where the components are deployed, those of
// members by the project controller, those of operators by themselves.
package gardenrbac

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// The groups of the garden API, and common lists of verbs.
const (
	core           = "core.gardener.cloud"
	security       = "security.gardener.cloud"
	seedManagement = "seedmanagement.gardener.cloud"
	operations     = "operations.gardener.cloud"
	settings       = "settings.gardener.cloud"
	dashboard      = "dashboard.gardener.cloud"
	events         = "events.k8s.io"
	kubernetes     = ""

	groupAuthenticated = "system:authenticated"
	groupBootstrappers = "system:bootstrappers"
	userAggregator     = "system:kube-aggregator"

	// roleMember and roleServiceAccountManager are in the label gardener.cloud/role of roles that administrators have too, roleProjectViewer in that
	// of the role that viewers of the garden have too.
	roleMember, roleServiceAccountManager, roleProjectViewer = "project-member", "project-serviceaccountmanager", "project-viewer"
)

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	all   = []string{rbacv1.VerbAll}
)

// Objects returns the roles, the bindings to groups, the ConfigMap that all authenticated users may read, and the policies for what members
// write.
func Objects() []client.Object {
	return slices.Concat(componentRoles(), landscapeRoles(), projectRoles(), bootstrapRoles(), admissionPolicies())
}

// Virtual returns what a virtual garden has of Gardener: namespace garden, which other clusters that serve the garden API have before, and Objects.
func Virtual() []client.Object {
	// The namespace has the objects of operators, which outlive the garden.
	garden := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: constants.GardenNamespace, Labels: map[string]string{constants.App: "gardener"},
		Annotations: map[string]string{resourcesv1alpha1.KeepObject: "true"},
	}}
	return append([]client.Object{garden}, Objects()...)
}

// landscapeRoles are for operators, and for all authenticated users.
func landscapeRoles() []client.Object {
	const admin, readGlobal, userAuth = "gardener.cloud:admin", "gardener.cloud:system:read-global-resources", "gardener.cloud:system:user-auth"
	objects := []client.Object{
		labelled(clusterRole(admin,
			rule([]string{core, seedManagement, operations, settings}, []string{rbacv1.ResourceAll}, all),
			// Not their subresource: tokens of WorkloadIdentities are access to accounts of infrastructures.
			rule([]string{security}, []string{"credentialsbindings", "workloadidentities"}, all),
			// The terminals of the dashboard, if it is installed.
			rule([]string{dashboard}, []string{rbacv1.ResourceAll}, write),
			rule([]string{kubernetes}, []string{"configmaps", "events", "namespaces", "resourcequotas", "secrets", "serviceaccounts", "serviceaccounts/token"}, write),
			rule([]string{events}, []string{"events"}, write),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests"}, write),
			rule([]string{"coordination.k8s.io"}, []string{"leases"}, write),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"}, write),
			rule([]string{"admissionregistration.k8s.io"}, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, write),
			rule([]string{"apiregistration.k8s.io"}, []string{"apiservices"}, write),
			rule([]string{"apiextensions.k8s.io"}, []string{"customresourcedefinitions"}, write),
		), constants.GardenRole, "admin"),
		labelled(clusterRole("gardener.cloud:viewer",
			// InternalSecrets are not for viewers.
			rule([]string{core}, []string{
				"backupbuckets", "backupentries", "cloudprofiles", "controllerdeployments", "controllerinstallations", "controllerregistrations",
				"exposureclasses", "namespacedcloudprofiles", "plants", "projects", "quotas", "secretbindings", "seeds", "shoots",
			}, read),
			rule([]string{security, seedManagement, operations, settings, dashboard}, []string{rbacv1.ResourceAll}, read),
			rule([]string{core}, []string{"shoots/viewerkubeconfig"}, []string{"create"}),
			rule([]string{kubernetes}, []string{"configmaps", "events", "namespaces", "resourcequotas", "serviceaccounts"}, read),
			rule([]string{events}, []string{"events"}, read),
			rule([]string{"coordination.k8s.io"}, []string{"leases"}, read),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"}, read),
			rule([]string{"admissionregistration.k8s.io"}, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, read),
			rule([]string{"apiregistration.k8s.io"}, []string{"apiservices"}, read),
		), constants.GardenRole, "viewer"),
		// The kube-apiserver, which checks whether gardener-apiserver is available. It is this user only for the API servers behind it.
		userBinding(admin, admin, userAggregator),
		labelled(aggregated(constants.ClusterRoleGardenerAdministrators, constants.GardenRole, "admin", roleMember, roleServiceAccountManager),
			constants.GardenRole, "administrators"),
		// What extensions add to the role of members and viewers of projects, operators have in all projects.
		labelled(aggregated("gardener.cloud:system:viewers", constants.GardenRole, "viewer", roleProjectViewer), constants.GardenRole, "viewers"),
		// Operators bind this role to users who may create projects.
		clusterRole("gardener.cloud:system:project-creation", rule([]string{core}, []string{"projects"}, []string{"create"})),

		clusterRole(readGlobal,
			rule([]string{core}, []string{"cloudprofiles", "controllerregistrations", "exposureclasses", "seeds"}, read),
			rule([]string{settings}, []string{"clusteropenidconnectpresets"}, read),
			rule([]string{"apiextensions.k8s.io"}, []string{"customresourcedefinitions"}, read)),
		binding(readGlobal, readGlobal, groupAuthenticated),
		// For clients that serve users with their own tokens, such as the dashboard.
		clusterRole(userAuth,
			rule([]string{"authentication.k8s.io"}, []string{"tokenreviews"}, []string{"create"}),
			rule([]string{"authorization.k8s.io"}, []string{"selfsubjectaccessreviews"}, []string{"create"})),
		binding(userAuth, userAuth, groupAuthenticated),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenerSystemPublicNamespace}},
	}
	objects = append(objects, readable("gardener.cloud:system:read-gardener-system-public", constants.GardenerSystemPublicNamespace,
		constants.ConfigMapNameGardenerInfo, "kube-root-ca.crt")...)
	return append(objects, readable("gardener.cloud:system:read-cluster-identity-configmap", metav1.NamespaceSystem, constants.ClusterIdentity)...)
}

// projectRoles are for the members of projects. Their rules are those of the roles with the label.
func projectRoles() []client.Object {
	presets, bastions := rule([]string{settings}, []string{"openidconnectpresets"}, write), rule([]string{operations}, []string{"bastions"}, write)
	return []client.Object{
		labelled(aggregated("gardener.cloud:system:project-member", constants.AggregateToProjectMember, "true"), constants.GardenRole, roleMember),
		labelled(clusterRole("gardener.cloud:system:project-member-aggregation",
			rule([]string{kubernetes}, []string{"configmaps", "secrets"}, write),
			rule([]string{kubernetes}, []string{"events"}, []string{"create", "get", "list", "patch", "update", "watch"}),
			rule([]string{events}, []string{"events"}, read),
			rule([]string{kubernetes}, []string{"resourcequotas", "serviceaccounts"}, read),
			rule([]string{core}, []string{"namespacedcloudprofiles", "plants", "quotas", "secretbindings", "shoots"}, write),
			rule([]string{core}, []string{"shoots/adminkubeconfig", "shoots/viewerkubeconfig"}, []string{"create"}),
			rule([]string{security}, []string{"credentialsbindings", "workloadidentities"}, write),
			bastions, presets,
			rule([]string{"rbac.authorization.k8s.io"}, []string{"rolebindings", "roles"}, write),
		), constants.AggregateToProjectMember, "true"),

		labelled(aggregated("gardener.cloud:system:project-viewer", constants.AggregateToProjectViewer, "true"), constants.GardenRole, roleProjectViewer),
		labelled(clusterRole("gardener.cloud:system:project-viewer-aggregation",
			rule([]string{kubernetes}, []string{"configmaps", "events", "resourcequotas", "serviceaccounts"}, read),
			rule([]string{events}, []string{"events"}, read),
			rule([]string{core}, []string{"namespacedcloudprofiles", "plants", "quotas", "secretbindings", "shoots"}, read),
			rule([]string{core}, []string{"shoots/viewerkubeconfig"}, []string{"create"}),
			rule([]string{security}, []string{"credentialsbindings", "workloadidentities"}, read),
			rule([]string{operations}, []string{"bastions"}, read),
			rule([]string{settings}, []string{"openidconnectpresets"}, read),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"rolebindings", "roles"}, read),
		), constants.AggregateToProjectViewer, "true"),

		labelled(aggregated("gardener.cloud:system:project-serviceaccountmanager", constants.AggregateToProjectServiceAccountManager, "true"),
			constants.GardenRole, roleServiceAccountManager),
		labelled(clusterRole("gardener.cloud:system:project-serviceaccountmanager-aggregation",
			rule([]string{kubernetes}, []string{"serviceaccounts"}, write),
			rule([]string{kubernetes}, []string{"serviceaccounts/token"}, []string{"create"}),
		), constants.AggregateToProjectServiceAccountManager, "true"),
	}
}

// bootstrapRoles are for gardenlets that have no certificate yet. They have no other roles: the kube-apiserver asks
// gardener-admission-controller what a gardenlet may do, as a role would allow it for the objects of all seeds.
func bootstrapRoles() []client.Object {
	const bootstrapper = graph.SeedBootstrapper
	return []client.Object{
		clusterRole(bootstrapper,
			// It watches its own CertificateSigningRequest.
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests"}, []string{"create", "get", "list", "watch"}),
			// With the permission to create these, certificates are approved automatically.
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests/seedclient", "certificatesigningrequests/shootclient"}, []string{"create"})),
		binding(bootstrapper, bootstrapper, groupBootstrappers),
	}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// aggregated is a role that aggregates all roles with one of the values of a label. The kube-controller-manager writes its rules.
func aggregated(name, label string, values ...string) *rbacv1.ClusterRole {
	role := clusterRole(name)
	role.AggregationRule = &rbacv1.AggregationRule{}
	for _, value := range values {
		role.AggregationRule.ClusterRoleSelectors = append(role.AggregationRule.ClusterRoleSelectors,
			metav1.LabelSelector{MatchLabels: map[string]string{label: value}})
	}
	return role
}

func labelled(role *rbacv1.ClusterRole, key, value string) *rbacv1.ClusterRole {
	role.Labels = map[string]string{key: value}
	return role
}

// rule grants verbs on resources, or only on those of the given names.
func rule(groups, resources, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs, ResourceNames: names}
}

// binding grants a ClusterRole to a group, everywhere.
func binding(name, role, group string) *rbacv1.ClusterRoleBinding {
	return bindingTo(name, role, rbacv1.GroupKind, group)
}

// userBinding grants a ClusterRole to a user, everywhere.
func userBinding(name, role, user string) *rbacv1.ClusterRoleBinding {
	return bindingTo(name, role, rbacv1.UserKind, user)
}

func bindingTo(name, role, kind, subject string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: subject}},
	}
}

// readable allows all authenticated users to read ConfigMaps of a namespace.
func readable(name, namespace string, configMaps ...string) []client.Object {
	return []client.Object{
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Rules:      []rbacv1.PolicyRule{rule([]string{kubernetes}, []string{"configmaps"}, read, configMaps...)},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: groupAuthenticated}},
		},
	}
}
