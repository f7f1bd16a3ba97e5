package gardenrbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// componentRoles are for the components of Gardener in the garden. A component that writes roles needs the permission to grant what
// it does not have itself.
func componentRoles() []client.Object {
	rbac := []string{"rbac.authorization.k8s.io"}
	events := rule([]string{kubernetes, "events.k8s.io"}, []string{"events"}, []string{"create", "get", "list", "patch", "update", "watch"})
	leases := rule([]string{"coordination.k8s.io"}, []string{"leases"}, write)
	reviews := rule([]string{"authorization.k8s.io"}, []string{"subjectaccessreviews"}, []string{"create"})
	return []client.Object{
		// It accesses objects of the garden API in etcd.
		clusterRole("gardener.cloud:system:apiserver",
			rule([]string{kubernetes}, []string{"configmaps", "namespaces", "secrets", "serviceaccounts"}, read),
			// It creates the namespaces for the leases of seeds and the issuers of shoots, and the identity of the garden.
			rule([]string{kubernetes}, []string{"configmaps", "namespaces"}, []string{"create", "patch", "update"}),
			rule([]string{kubernetes}, []string{"resourcequotas"}, read),
			rule([]string{kubernetes}, []string{"resourcequotas/status"}, []string{"patch", "update"}),
			rule([]string{"admissionregistration.k8s.io"}, []string{
				"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
				"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
			}, read),
			rule([]string{"flowcontrol.apiserver.k8s.io"}, []string{"flowschemas", "prioritylevelconfigurations"}, read),
			rule([]string{"flowcontrol.apiserver.k8s.io"}, []string{"flowschemas/status"}, []string{"patch", "update"}),
			rule(gardenGroups, []string{rbacv1.ResourceAll}, read),
			leases, events, reviews,
		),
		// Requests to the server are authenticated and authorized by the kube-apiserver.
		clusterRole("gardener.cloud:apiserver:auth-delegator",
			rule([]string{"authentication.k8s.io"}, []string{"tokenreviews"}, []string{"create"}), reviews,
		),
		clusterRole("gardener.cloud:system:controller-manager",
			rule(gardenGroups, []string{rbacv1.ResourceAll}, all),
			rule([]string{kubernetes}, []string{"configmaps", "namespaces", "resourcequotas", "secrets", "serviceaccounts"}, write),
			rule(rbac, []string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"}, append([]string{"bind", "escalate"}, write...)),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests"}, read),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests/approval"}, []string{"patch", "update"}),
			rule([]string{"certificates.k8s.io"}, []string{"signers"}, []string{"approve"}, "kubernetes.io/kube-apiserver-client"),
			leases, events, reviews,
		),
		clusterRole("gardener.cloud:system:scheduler",
			rule([]string{core}, []string{
				"cloudprofiles", "controllerdeployments", "controllerregistrations", "exposureclasses", "namespacedcloudprofiles", "projects",
				"seeds", "shoots",
			}, read),
			rule([]string{core}, []string{"shoots/binding", "shoots/status"}, []string{"get", "patch", "update"}),
			rule([]string{core}, []string{"shoots"}, []string{"patch", "update"}),
			rule([]string{kubernetes}, []string{"configmaps", "namespaces"}, read),
			leases, events,
		),
		clusterRole("gardener.cloud:system:admission-controller",
			rule(gardenGroups, []string{rbacv1.ResourceAll}, read),
			rule([]string{kubernetes}, []string{"configmaps", "namespaces", "secrets", "serviceaccounts"}, read),
			rule([]string{"certificates.k8s.io"}, []string{"certificatesigningrequests"}, read),
			rule(rbac, []string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"}, read),
			rule([]string{"coordination.k8s.io"}, []string{"leases"}, read),
			events, reviews,
		),
	}
}
