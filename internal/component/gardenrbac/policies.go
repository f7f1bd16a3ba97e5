package gardenrbac

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// The roles of members allow them to write all ConfigMaps, Secrets and events of their project. The policies here are for those of them that
// gardenlets and controllers write. The kube-apiserver evaluates policies itself, so no process has to run for them.

// systemWrites says in CEL that a request is not one of a member: of gardenlets, and of those who may do the same in all namespaces, such as
// operators, components of Gardener, the garbage collector and the controller for namespaces. Members have their roles in their namespaces only.
const systemWrites = `'` + constants.SeedsGroup + `' in request.userInfo.groups || ` +
	`(request.operation == 'UPDATE' ? ['update', 'patch'] : [request.operation.lowerAscii()]).exists(verb, ` +
	`authorizer.group(request.resource.group).resource(request.resource.resource).check(verb).allowed())`

var (
	// publishedSuffixes end the names of objects that are published for a Shoot, after its name and a dot. Names of Shoots have no dots.
	publishedSuffixes = []string{
		constants.ShootProjectSecretSuffixCACluster, constants.ShootProjectConfigMapSuffixCAKubelet, constants.ShootProjectSecretSuffixSSHKeypair,
		constants.ShootProjectSecretSuffixOldSSHKeypair, constants.ShootProjectSecretSuffixMonitoring, "kubeconfig",
	}
	// publishedRoles are in the label gardener.cloud/role of these objects, by which clients find them.
	publishedRoles = []string{
		constants.GardenRoleCACluster, constants.GardenRoleCAKubelet, constants.GardenRoleCAClient, constants.GardenRoleSSHKeyPair,
	}
	// systemReporters begin the names of components in events. Those of Gardener are followed by the name of a controller or a host.
	systemReporters = []string{"gardener-", "gardenlet", "kube-", "system:"}
)

// admissionPolicies are the policies for project namespaces, with their bindings.
func admissionPolicies() []client.Object {
	published := fmt.Sprintf(`o.metadata.name.matches('^[^.]+[.](%s)$') || o.metadata.?labels[?'%s'].orValue('') in %s`,
		strings.ReplaceAll(strings.Join(publishedSuffixes, "|"), ".", "[.]"), constants.GardenRole, celList(publishedRoles))
	both := func(expression string) string {
		return `[object, oldObject].all(o, o == null || ` + expression + `)`
	}
	return slices.Concat(
		seedPolicy(),
		admissionPolicy("published-objects.gardener.cloud",
			admissionregistrationv1.Validation{
				Expression: both(`!(` + published + `)`),
				Message:    "Objects that are published for a Shoot, by their name or the label " + constants.GardenRole + ", are written by its gardenlet only",
			},
			rules("", "v1", "configmaps", "secrets")),
		admissionPolicy("events.gardener.cloud",
			admissionregistrationv1.Validation{
				// Events of both groups have other names for the same fields.
				Expression: both(`!o.?involvedObject.?apiVersion.orValue(o.?regarding.?apiVersion.orValue('')).matches('[.]gardener[.]cloud/') && ` +
					`[o.?reportingComponent, o.?reportingController, o.?source.?component, o.?deprecatedSource.?component].all(` +
					`name, ` + celList(systemReporters) + `.all(prefix, !name.orValue('').startsWith(prefix)))`),
				Message: "Events about objects of Gardener, and events of system components (" + strings.Join(systemReporters, ", ") + "), are written by these components only",
			},
			rules("", "v1", "events"), rules("events.k8s.io", "v1", "events")),
	)
}

// seedPolicy is for gardenlets. The permission to create Secrets cannot be restricted to names, and some Secrets are filled by the
// kube-controller-manager: with the token of any ServiceAccount of the namespace.
func seedPolicy() []client.Object {
	objects := admissionPolicy("secrets-of-gardenlets.gardener.cloud",
		admissionregistrationv1.Validation{
			Expression: `object == null || object.type != 'kubernetes.io/service-account-token'`,
			Message:    "Gardenlets request tokens of their ServiceAccounts, and must not write Secrets that are filled with them",
		},
		rules("", "v1", "secrets"))
	spec := &objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec //nolint:forcetypeassert // it is the policy
	spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{}
	spec.MatchConditions = []admissionregistrationv1.MatchCondition{{
		Name: "a-gardenlet", Expression: `'` + constants.SeedsGroup + `' in request.userInfo.groups`,
	}}
	return objects
}

// admissionPolicy is a policy that members of projects have to comply with.
func admissionPolicy(name string, validation admissionregistrationv1.Validation, matched ...admissionregistrationv1.NamedRuleWithOperations) []client.Object {
	validation.Reason = new(metav1.StatusReasonForbidden)
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: new(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{
					MatchPolicy:       new(admissionregistrationv1.Equivalent),
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.GardenRole: constants.GardenRoleProject}},
					ObjectSelector:    &metav1.LabelSelector{},
					ResourceRules:     matched,
				},
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "not-the-system", Expression: `!(` + systemWrites + `)`}},
				Validations:     []admissionregistrationv1.Validation{validation},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}

func rules(group, version string, resources ...string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: new(admissionregistrationv1.NamespacedScope),
		},
	}}
}

func celList(values []string) string { return `['` + strings.Join(values, `', '`) + `']` }
