package gardenrbac

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// componentRoles are for the components of Gardener in the garden. test/rights compares them with what the components do. The rights for the
// leader election of a component come with its Deployment, as they are for one namespace.
func componentRoles() []client.Object {
	rbac := []string{"rbac.authorization.k8s.io"}
	patch := []string{"patch"}
	reportEvents := rule([]string{kubernetes, "events.k8s.io"}, []string{"events"}, []string{"create", "patch"})
	reviews := rule([]string{"authorization.k8s.io"}, []string{"subjectaccessreviews"}, []string{"create"})
	return []client.Object{
		// It accesses objects of the garden API in etcd, and those of the Kubernetes API to check references to them.
		clusterRole("gardener.cloud:system:apiserver",
			rule([]string{kubernetes}, []string{"configmaps", "namespaces", "resourcequotas", "secrets", "serviceaccounts"}, read),
			// It creates the namespaces for the leases of seeds and the issuers of shoots, and the identity of the garden.
			rule([]string{kubernetes}, []string{"configmaps", "namespaces"}, []string{"create"}),
			rule([]string{kubernetes}, []string{"configmaps"}, []string{"update"}, constants.ClusterIdentity),
			// It counts objects of the garden API.
			rule([]string{kubernetes}, []string{"resourcequotas/status"}, []string{"update"}),
			rule([]string{"admissionregistration.k8s.io"}, []string{
				"mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
			}, read),
			rule([]string{"flowcontrol.apiserver.k8s.io"}, []string{"flowschemas", "prioritylevelconfigurations"}, read),
			rule([]string{"flowcontrol.apiserver.k8s.io"}, []string{"flowschemas/status"}, patch),
			reviews,
		),
		// Requests to the server are authenticated and authorized by the kube-apiserver.
		clusterRole("gardener.cloud:apiserver:auth-delegator",
			rule([]string{"authentication.k8s.io"}, []string{"tokenreviews"}, []string{"create"}), reviews,
		),
		clusterRole("gardener.cloud:system:controller-manager",
			rule([]string{core}, []string{
				"backupbuckets", "backupentries", "cloudprofiles", "controllerdeployments", "controllerinstallations", "controllerregistrations",
				"exposureclasses", "internalsecrets", "namespacedcloudprofiles", "plants", "projects", "quotas", "secretbindings", "seeds", "shoots", "shootstates",
			}, read),
			rule([]string{operations}, []string{"bastions"}, read),
			rule([]string{security}, []string{"credentialsbindings", "workloadidentities"}, read),
			rule([]string{seedManagement}, []string{"managedseeds", "managedseedsets"}, read),
			// Finalizers and labels, and what is in the specs of Projects, Shoots and ControllerInstallations.
			rule([]string{core}, []string{
				"cloudprofiles", "controllerdeployments", "controllerinstallations", "controllerregistrations", "exposureclasses", "internalsecrets",
				"namespacedcloudprofiles", "plants", "projects", "quotas", "secretbindings", "seeds", "shoots", "shootstates",
			}, patch),
			rule([]string{core}, []string{
				"cloudprofiles/status", "namespacedcloudprofiles/status", "plants/status", "projects/status", "seeds/status", "shoots/status",
			}, patch),
			rule([]string{security}, []string{"credentialsbindings", "workloadidentities"}, patch),
			rule([]string{seedManagement}, []string{"managedseeds", "managedseedsets", "managedseedsets/status"}, patch),
			// The replicas of a ManagedSeedSet, which owns them.
			rule([]string{seedManagement}, []string{"managedseeds"}, []string{"create", "delete"}),
			rule([]string{seedManagement}, []string{"managedseedsets/finalizers"}, []string{"update"}),
			rule([]string{kubernetes}, []string{"configmaps", "namespaces", "secrets"}, patch),
			// The names of Seeds.
			rule([]string{kubernetes}, []string{"configmaps"}, []string{"create"}),
			// It creates an installation per seed, and deletes what has expired: bastions, shoots with a quota, and (below) projects.
			rule([]string{core}, []string{"controllerinstallations"}, []string{"create", "delete"}),
			rule([]string{core}, []string{"shoots"}, []string{"create", "delete"}),
			rule([]string{operations}, []string{"bastions"}, []string{"delete"}),
			// What it grants to the members of a Project, and objects that a Project owns.
			rule([]string{core}, []string{"projects"}, []string{"delete", "manage-members", "update"}),
			rule([]string{core}, []string{"projects/finalizers"}, []string{"update"}),
			rule([]string{kubernetes}, []string{"configmaps", "namespaces", "resourcequotas", "secrets", "serviceaccounts"}, read),
			rule([]string{kubernetes}, []string{"namespaces"}, []string{"create", "delete"}),
			rule([]string{kubernetes}, []string{"resourcequotas"}, []string{"create", "patch"}),
			// Copies of the Secrets of the garden for each seed.
			rule([]string{kubernetes}, []string{"secrets"}, []string{"create", "delete", "update"}),
			// Policies (controllerManagerPolicies) restrict what it binds and aggregates: their names depend on projects and extensions,
			// and RBAC has no patterns.
			rule(rbac, []string{"clusterrolebindings", "clusterroles", "rolebindings"}, []string{"create", "delete", "get", "list", "patch", "watch"}),
			rule(rbac, []string{"clusterroles"}, []string{"bind", "escalate"}),
			rule(rbac, []string{"clusterroles/finalizers"}, []string{"update"}),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests"}, read),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests/approval"}, []string{"update"}),
			rule([]string{"certificates.k8s.io"}, []string{"signers"}, []string{"approve"}, "kubernetes.io/kube-apiserver-client"),
			// Those that gardenlets renew.
			rule([]string{"coordination.k8s.io"}, []string{"leases"}, []string{"get"}),
			reportEvents,
			// It deletes those that have expired.
			rule([]string{"events.k8s.io"}, []string{"events"}, []string{"delete", "get", "list", "watch"}),
			reviews,
		),
		clusterRole("gardener.cloud:system:scheduler",
			rule([]string{core}, []string{"cloudprofiles", "namespacedcloudprofiles", "seeds", "shoots"}, read),
			rule([]string{core}, []string{"shoots/binding", "shoots/status"}, patch),
			reportEvents,
		),
		clusterRole("gardener.cloud:system:admission-controller",
			// What references lead from, to seeds and self-hosted shoots.
			rule([]string{core}, []string{
				"backupbuckets", "backupentries", "controllerdeployments", "controllerinstallations", "projects", "secretbindings", "seeds", "shoots",
			}, read),
			rule([]string{seedManagement}, []string{"gardenlets", "managedseeds"}, read),
			rule([]string{operations}, []string{"bastions"}, read),
			rule([]string{security}, []string{"credentialsbindings"}, read),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests"}, read),
			rule([]string{kubernetes}, []string{"serviceaccounts"}, read),
			// Whether an object exists that a client deletes or creates. Secrets are also found by their labels.
			rule([]string{core}, []string{"internalsecrets", "shootstates"}, []string{"get"}),
			rule([]string{kubernetes}, []string{"configmaps"}, []string{"get"}),
			rule([]string{kubernetes}, []string{"secrets"}, []string{"get", "list"}),
			// Namespaces may be counted, like other cluster-scoped objects above.
			rule([]string{kubernetes}, []string{"namespaces"}, []string{"get", "list"}),
			rule([]string{"coordination.k8s.io"}, []string{"leases"}, []string{"get"}),
			rule(rbac, []string{"clusterrolebindings"}, []string{"get"}),
		),
	}
}
