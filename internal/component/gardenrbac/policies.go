package gardenrbac

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// The roles of members allow them to write all ConfigMaps, Secrets and events of their project. The policies here are for those of them that
// gardenlets and controllers write. The kube-apiserver evaluates policies itself, so no process has to run for them.

// Clients in CEL, which the authorizers and restrictions recognize in the same way.
const (
	// gardenletClients says that a request is one of a gardenlet, or of an extension of a seed.
	gardenletClients = `'` + constants.SeedsGroup + `' in request.userInfo.groups || ` +
		`'` + constants.ShootsGroup + `' in request.userInfo.groups && request.userInfo.username.startsWith('` + constants.ShootUserNamePrefix + `') || ` +
		`request.userInfo.username.matches('^system:serviceaccount:seed-[^:]+:extension-')`
	// clients adds the extensions of self-hosted shoots. Their ServiceAccounts are in namespaces of projects, where members can create them too.
	clients = gardenletClients + ` || request.userInfo.username.matches('^system:serviceaccount:garden(-[^:]+)?:extension-shoot--[^:]+?--')`
)

// systemWrites says in CEL that a request is not one of a member: of gardenlets, whom restrictions are for, and of those who may do the same in all
// namespaces, such as operators, components of Gardener, the garbage collector and the controller for namespaces. Members have their roles in
// their namespaces only.
const systemWrites = gardenletClients + ` || ` +
	// Members of a project may create ServiceAccounts with such names.
	`!request.userInfo.username.matches('^system:serviceaccount:[^:]+:extension-shoot--') && ` +
	`(request.operation == 'UPDATE' ? ['update', 'patch'] : [request.operation.lowerAscii()]).exists(verb, ` +
	`authorizer.group(request.resource.group).resource(request.resource.resource).check(verb).allowed())`

// controllerManager is the name of the ServiceAccount of gardener-controller-manager.
const controllerManager = "gardener-controller-manager"

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

// publishedName is the CEL function for a name that tells whether it is one of an object that is published for a Shoot.
func publishedName() string {
	return `matches('^[^.]+[.](` + strings.ReplaceAll(strings.Join(publishedSuffixes, "|"), ".", "[.]") + `)$')`
}

// admissionPolicies are the policies for project namespaces, with their bindings.
func admissionPolicies() []client.Object {
	published := fmt.Sprintf(`o.metadata.name.%s || o.metadata.?labels[?'%s'].orValue('') in %s`, publishedName(), constants.GardenRole, celList(publishedRoles))
	both := func(expression string) string {
		return `[object, oldObject].all(o, o == null || ` + expression + `)`
	}
	return slices.Concat(
		clientPolicies(), controllerManagerPolicies(),
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

// clientPolicies are for gardenlets and extensions. What they create is restricted by their seed or shoot; this is about content that no name
// justifies, also in updates, which are not restricted.
func clientPolicies() []client.Object {
	bindings := rules(rbacv1.GroupName, "v1", "clusterrolebindings")
	bindings.Scope = new(admissionregistrationv1.ClusterScope)
	return slices.Concat(
		// These Secrets are filled by the kube-controller-manager: with the token of any ServiceAccount of the namespace.
		clientPolicy("secrets-of-gardenlets.gardener.cloud",
			`object == null || object.type != 'kubernetes.io/service-account-token'`,
			"Gardenlets request tokens of their ServiceAccounts, and must not write Secrets that are filled with them"),
		// Secrets in the namespace "garden" with a role are copied to all seeds, but for those of Shoots, and are configuration of Gardener.
		clientPolicy("roles-of-secrets.gardener.cloud",
			fmt.Sprintf(`object == null || request.namespace != '%s' || [object.metadata.?labels[?'%[2]s'].orValue('')].all(role, role in %s || `+
				`oldObject != null && role == oldObject.metadata.?labels[?'%[2]s'].orValue(''))`,
				constants.GardenNamespace, constants.GardenRole, celList(append([]string{"", constants.GardenRoleMonitoring}, publishedRoles...))),
			"Gardenlets and extensions must not give a Secret in namespace "+constants.GardenNamespace+" a role for other seeds, with the label "+constants.GardenRole),
		// Secrets of users and operators are for several seeds, which all have to be able to add their finalizer.
		clientPolicy("changes-of-secrets.gardener.cloud",
			fmt.Sprintf(`oldObject == null || request.namespace == '%s' || request.namespace == '%s' && oldObject.metadata.name.startsWith('%s') || `+
				`oldObject.metadata.name.%s || request.namespace == 'kube-system' && oldObject.metadata.name.startsWith('bootstrap-token-') || `+
				unchanged("type", "data", "immutable"),
				constants.GardenerShootIssuerNamespace, constants.GardenNamespace, constants.SecretPrefixGeneratedBackupBucket, publishedName()),
			"Gardenlets and extensions must not change or delete Secrets of users and operators, but for finalizers and annotations"),
		// The same is so for what else Shoots, Seeds and bindings refer to: a change would act on all that refer to it, also on other seeds. Whoever
		// changes the configuration of the authentication is an administrator of the clusters that use it.
		clientPolicyFor(rules("", "v1", "configmaps"), "changes-of-configmaps.gardener.cloud",
			fmt.Sprintf(`oldObject == null || oldObject.metadata.name.%s || `, publishedName())+unchanged("data", "binaryData", "immutable"),
			"Gardenlets and extensions must not change or delete ConfigMaps of users and operators, but for finalizers and annotations"),
		clientPolicyFor(rules(corev1beta1.GroupName, "v1beta1", "internalsecrets"), "changes-of-internalsecrets.gardener.cloud",
			fmt.Sprintf(`oldObject == null || oldObject.metadata.name.matches('^[^.]+[.]%s$') || `, constants.ShootProjectSecretSuffixCAClient)+
				unchanged("type", "data", "immutable"),
			"Gardenlets and extensions must not change or delete InternalSecrets of users and operators, but for finalizers and annotations"),
		clientPolicyFor(rules(securityv1alpha1.GroupName, "v1alpha1", "workloadidentities"), "changes-of-workloadidentities.gardener.cloud",
			`oldObject == null || `+unchanged("spec"),
			"Gardenlets and extensions must not change or delete WorkloadIdentities, but for finalizers and annotations"),
		// What a token is for is checked when it is created.
		clientPolicy("bootstrap-tokens.gardener.cloud",
			`object == null || oldObject == null || request.namespace != 'kube-system' || oldObject.type != 'bootstrap.kubernetes.io/token' || `+
				`['description', 'auth-extra-groups', 'token-id'].all(key, object.?data[?key] == oldObject.?data[?key])`,
			"Gardenlets and extensions must not change which gardenlet a bootstrap token is for"),
		// So is for whom a binding is, which lets request client certificates for new seeds.
		clientPolicyFor(bindings, "bootstrap-bindings.gardener.cloud",
			`object == null || oldObject == null || object.?subjects == oldObject.?subjects`,
			"Gardenlets and extensions must not change for whom a ClusterRoleBinding is"),
	)
}

// unchanged is the CEL expression for an object that stays, with the same values of some fields, labels and owners. With an owner that does not
// exist, the garbage collector would delete it; with an immutable content, its users could not change it any more.
func unchanged(fields ...string) string {
	expression := `object != null && object.metadata.?labels == oldObject.metadata.?labels && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences`
	for _, field := range fields {
		expression += fmt.Sprintf(` && object.?%[1]s == oldObject.?%[1]s`, field)
	}
	return expression
}

// clientPolicy is a policy for Secrets that clients write.
func clientPolicy(name, expression, message string) []client.Object {
	return clientPolicyFor(rules("", "v1", "secrets"), name, expression, message)
}

// clientPolicyFor is a policy for objects that clients write.
func clientPolicyFor(matched admissionregistrationv1.NamedRuleWithOperations, name, expression, message string) []client.Object {
	objects := admissionPolicy(name, admissionregistrationv1.Validation{Expression: expression, Message: message}, matched)
	spec := &objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec //nolint:forcetypeassert // it is the policy
	spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{}
	spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "a-client", Expression: clients}}
	return objects
}

// controllerManagerPolicies are for gardener-controller-manager. It binds and aggregates roles of projects and of extensions, whose names RBAC
// cannot describe, so that its role allows it to bind and aggregate all roles.
func controllerManagerPolicies() []client.Object {
	const (
		extensionPrefix = `'gardener.cloud:extension:project:'`
		ownPrefix       = `'gardener.cloud:system:project'`
	)
	var objects []client.Object
	for _, policy := range []struct{ resource, expression, message string }{
		{
			"clusterroles",
			// Of an aggregated role, the kube-controller-manager writes the rules. Clients write null if there are none.
			`object.metadata.name.startsWith(` + extensionPrefix + `) ? ` +
				`(oldObject == null ? !has(object.rules) || dyn(object.rules) == null || size(object.rules) == 0 : object.?rules == oldObject.?rules) && ` +
				`has(object.aggregationRule) && object.aggregationRule.clusterRoleSelectors.all(s, size(s.?matchLabels.orValue({})) > 0 && ` +
				`s.matchLabels.all(key, key == '` + constants.AggregateToExtensionRole + `')) : ` +
				`object.metadata.name.startsWith(` + ownPrefix + `) && !has(object.aggregationRule) && object.?rules.orValue([]).all(r, ` +
				`r.?resources.orValue(['']).all(resource, resource in ['namespaces', 'projects']) && size(r.?resourceNames.orValue([])) == 1)`,
			"writes only the ClusterRoles of single projects",
		},
		{
			"clusterrolebindings",
			`object.roleRef.name.startsWith(` + ownPrefix + `) || !object.roleRef.name.startsWith('gardener.cloud:') && ` +
				`!object.roleRef.name.startsWith('system:') && !(object.roleRef.name in ['admin', 'cluster-admin', 'edit']) && ` +
				`object.?subjects.orValue([]).all(s, s.kind == 'ServiceAccount' && s.?namespace.orValue('').startsWith('` + constants.SeedNamespaceNamePrefix + `'))`,
			"binds ClusterRoles of projects, and those of extensions to their ServiceAccounts",
		},
		{
			"rolebindings",
			`object.roleRef.name.startsWith(` + ownPrefix + `) || object.roleRef.name.startsWith(` + extensionPrefix + `)`,
			"binds ClusterRoles of projects",
		},
	} {
		matched := rules("rbac.authorization.k8s.io", "v1", policy.resource)
		matched.Operations, matched.Scope = matched.Operations[:2], new(admissionregistrationv1.AllScopes) // deletions grant nothing
		created := admissionPolicy(policy.resource+"-of-controller-manager.gardener.cloud", admissionregistrationv1.Validation{
			Expression: policy.expression, Message: controllerManager + " " + policy.message,
		}, matched)
		spec := &created[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec //nolint:forcetypeassert // it is the policy
		spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{}
		spec.MatchConditions = []admissionregistrationv1.MatchCondition{{
			Name: "the-controller-manager", Expression: `request.userInfo.username.matches('^system:serviceaccount:[^:]+:` + controllerManager + `$')`,
		}}
		objects = append(objects, created...)
	}
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
