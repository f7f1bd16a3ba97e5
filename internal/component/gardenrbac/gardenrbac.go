// Package gardenrbac renders the roles of a garden cluster: those of Gardener's components, gardenlets, operators, and the members of
// projects.
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
)

// Values are what the roles depend on.
type Values struct {
	// SeedAuthorizer says that the kube-apiserver authorizes gardenlets with gardener-admission-controller. Then gardenlets have no role
	// here, as it would allow each of them to access the objects of all seeds.
	SeedAuthorizer bool
}

// The groups of the garden API, and common lists of verbs.
const (
	core           = "core.gardener.cloud"
	security       = "security.gardener.cloud"
	seedManagement = "seedmanagement.gardener.cloud"
	operations     = "operations.gardener.cloud"
	settings       = "settings.gardener.cloud"
	kubernetes     = ""

	groupAuthenticated = "system:authenticated"
	groupBootstrappers = "system:bootstrappers"
)

var (
	gardenGroups = []string{core, security, seedManagement, operations, settings}
	read         = []string{"get", "list", "watch"}
	write        = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	all          = []string{rbacv1.VerbAll}
)

// Objects returns the roles, the bindings to groups, the ConfigMap that all authenticated users may read, and the policies for what members
// write.
func Objects(v Values) []client.Object {
	return slices.Concat(componentRoles(), landscapeRoles(), projectRoles(), gardenletRoles(v), admissionPolicies())
}

// landscapeRoles are for operators, and for all authenticated users.
func landscapeRoles() []client.Object {
	readGlobal := "gardener.cloud:system:read-global-resources"
	objects := []client.Object{
		labelled(clusterRole("gardener.cloud:admin",
			rule(gardenGroups, []string{rbacv1.ResourceAll}, all),
			rule([]string{kubernetes}, []string{"configmaps", "events", "namespaces", "resourcequotas", "secrets", "serviceaccounts", "serviceaccounts/token"}, write),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests"}, read),
			rule([]string{"coordination.k8s.io"}, []string{"leases"}, read),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"}, write),
			rule([]string{"admissionregistration.k8s.io"}, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, write),
			rule([]string{"apiregistration.k8s.io"}, []string{"apiservices"}, write),
		), constants.GardenRole, "admin"),
		labelled(clusterRole("gardener.cloud:viewer",
			// InternalSecrets are not for viewers.
			rule([]string{core}, []string{
				"backupbuckets", "backupentries", "cloudprofiles", "controllerdeployments", "controllerinstallations", "controllerregistrations",
				"exposureclasses", "namespacedcloudprofiles", "plants", "projects", "quotas", "secretbindings", "seeds", "shoots",
			}, read),
			rule([]string{security, seedManagement, operations, settings}, []string{rbacv1.ResourceAll}, read),
			rule([]string{core}, []string{"shoots/viewerkubeconfig"}, []string{"create"}),
			rule([]string{kubernetes}, []string{"configmaps", "events", "namespaces", "resourcequotas", "serviceaccounts"}, read),
			rule([]string{"coordination.k8s.io"}, []string{"leases"}, read),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"}, read),
		), constants.GardenRole, "viewer"),
		clusterRole(constants.ClusterRoleGardenerAdministrators, rule(all, []string{rbacv1.ResourceAll}, all),
			rbacv1.PolicyRule{NonResourceURLs: []string{rbacv1.NonResourceAll}, Verbs: all}),
		// Operators bind this role to users who may create projects.
		clusterRole("gardener.cloud:system:project-creation", rule([]string{core}, []string{"projects"}, []string{"create"})),

		clusterRole(readGlobal,
			rule([]string{core}, []string{"cloudprofiles", "exposureclasses", "seeds"}, read),
			rule([]string{settings}, []string{"clusteropenidconnectpresets"}, read)),
		binding(readGlobal, readGlobal, groupAuthenticated),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenerSystemPublicNamespace}},
	}
	objects = append(objects, readable("gardener.cloud:system:read-gardener-system-public", constants.GardenerSystemPublicNamespace, constants.ConfigMapNameGardenerInfo)...)
	return append(objects, readable("gardener.cloud:system:read-cluster-identity-configmap", metav1.NamespaceSystem, constants.ClusterIdentity)...)
}

// projectRoles are for the members of projects. Their rules are those of the roles with the label.
func projectRoles() []client.Object {
	presets, bastions := rule([]string{settings}, []string{"openidconnectpresets"}, write), rule([]string{operations}, []string{"bastions"}, write)
	return []client.Object{
		aggregated("gardener.cloud:system:project-member", constants.AggregateToProjectMember),
		labelled(clusterRole("gardener.cloud:system:project-member-aggregation",
			rule([]string{kubernetes}, []string{"configmaps", "secrets"}, write),
			rule([]string{kubernetes}, []string{"events"}, []string{"create", "get", "list", "patch", "update", "watch"}),
			rule([]string{kubernetes}, []string{"resourcequotas", "serviceaccounts"}, read),
			rule([]string{core}, []string{"namespacedcloudprofiles", "plants", "quotas", "secretbindings", "shoots"}, write),
			rule([]string{core}, []string{"shoots/adminkubeconfig", "shoots/viewerkubeconfig"}, []string{"create"}),
			rule([]string{security}, []string{"credentialsbindings", "workloadidentities"}, write),
			bastions, presets,
			rule([]string{"rbac.authorization.k8s.io"}, []string{"rolebindings", "roles"}, write),
		), constants.AggregateToProjectMember, "true"),

		aggregated("gardener.cloud:system:project-viewer", constants.AggregateToProjectViewer),
		labelled(clusterRole("gardener.cloud:system:project-viewer-aggregation",
			rule([]string{kubernetes}, []string{"configmaps", "events", "resourcequotas", "serviceaccounts"}, read),
			rule([]string{core}, []string{"namespacedcloudprofiles", "plants", "quotas", "secretbindings", "shoots"}, read),
			rule([]string{core}, []string{"shoots/viewerkubeconfig"}, []string{"create"}),
			rule([]string{security}, []string{"credentialsbindings", "workloadidentities"}, read),
			rule([]string{operations}, []string{"bastions"}, read),
			rule([]string{settings}, []string{"openidconnectpresets"}, read),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"rolebindings", "roles"}, read),
		), constants.AggregateToProjectViewer, "true"),

		aggregated("gardener.cloud:system:project-serviceaccountmanager", constants.AggregateToProjectServiceAccountManager),
		labelled(clusterRole("gardener.cloud:system:project-serviceaccountmanager-aggregation",
			rule([]string{kubernetes}, []string{"serviceaccounts"}, write),
			rule([]string{kubernetes}, []string{"serviceaccounts/token"}, []string{"create"}),
		), constants.AggregateToProjectServiceAccountManager, "true"),
	}
}

// gardenletRoles are for gardenlets: for the bootstrap, and for the time after it.
func gardenletRoles(v Values) []client.Object {
	const bootstrapper, seeds = "gardener.cloud:system:seed-bootstrapper", "gardener.cloud:system:seeds"
	objects := []client.Object{
		clusterRole(bootstrapper,
			// It watches its own CertificateSigningRequest.
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests"}, []string{"create", "get", "list", "watch"}),
			// With the permission to create this one, certificates are approved automatically.
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests/seedclient"}, []string{"create"})),
		binding(bootstrapper, bootstrapper, groupBootstrappers),
	}
	if v.SeedAuthorizer {
		return objects
	}
	return append(objects,
		clusterRole(seeds,
			rule([]string{core}, []string{
				"cloudprofiles", "controllerdeployments", "controllerregistrations", "exposureclasses", "namespacedcloudprofiles", "projects",
				"quotas", "secretbindings",
			}, read),
			// Secrets, InternalSecrets, ServiceAccounts and their tokens are granted by name, for each seed, by gardener-controller-manager.
			rule([]string{core}, []string{"backupbuckets", "backupentries", "controllerinstallations", "seeds", "shootstates"}, write),
			rule([]string{core}, []string{"shoots"}, []string{"get", "list", "patch", "update", "watch"}),
			rule([]string{core}, []string{
				"backupbuckets/status", "backupentries/status", "controllerinstallations/status", "seeds/status", "shoots/status",
			}, []string{"get", "patch", "update"}),
			// Objects that they own: the admission plugin OwnerReferencesPermissionEnforcement asks for it.
			rule([]string{core}, []string{"backupbuckets/finalizers", "seeds/finalizers", "shoots/finalizers"}, []string{"update"}),
			rule([]string{security}, []string{"credentialsbindings"}, read),
			// Those that backups use get a finalizer.
			rule([]string{security}, []string{"workloadidentities"}, []string{"get", "list", "patch", "watch"}),
			rule([]string{security}, []string{"workloadidentities/token"}, []string{"create"}),
			rule([]string{seedManagement}, []string{"gardenlets", "managedseeds"}, []string{"get", "list", "patch", "update", "watch"}),
			rule([]string{seedManagement}, []string{"gardenlets/status", "managedseeds/status"}, []string{"get", "patch", "update"}),
			rule([]string{operations}, []string{"bastions"}, []string{"get", "list", "patch", "update", "watch"}),
			rule([]string{operations}, []string{"bastions/status"}, []string{"get", "patch", "update"}),
			rule([]string{kubernetes}, []string{"configmaps"}, write),
			rule([]string{kubernetes}, []string{"namespaces"}, read),
			rule([]string{kubernetes, "events.k8s.io"}, []string{"events"}, []string{"create", "patch"}),
			rule([]string{"coordination.k8s.io"}, []string{"leases"}, write),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests"}, []string{"create", "get", "list", "watch"}),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests/seedclient"}, []string{"create"}),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"clusterrolebindings"}, []string{"create", "delete", "get", "patch", "update"}),
			rule([]string{"rbac.authorization.k8s.io"}, []string{"clusterroles"}, []string{"bind"}, bootstrapper),
		),
		binding(seeds, seeds, constants.SeedsGroup),
	)
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// aggregated is a role that aggregates all roles with a label. The kube-controller-manager writes its rules.
func aggregated(name, label string) *rbacv1.ClusterRole {
	role := clusterRole(name)
	role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: "true"}}}}
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
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
}

// readable allows all authenticated users to read one ConfigMap.
func readable(name, namespace, configMap string) []client.Object {
	return []client.Object{
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Rules:      []rbacv1.PolicyRule{rule([]string{kubernetes}, []string{"configmaps"}, read, configMap)},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: groupAuthenticated}},
		},
	}
}
