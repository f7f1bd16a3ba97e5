package access

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
)

// namePrefix begins the names of Roles and RoleBindings; the name of the Seed follows.
const namePrefix = constants.SeedUserNamePrefix

var (
	read = []string{"get"}
	// finalize is for credentials of backups, which get a finalizer.
	finalize = []string{"get", "patch", "update"}
	// own is for what the gardenlet writes. It needs create too, which cannot be restricted to names.
	own        = []string{"delete", "get", "patch", "update"}
	everything = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
)

// observed is what belongs to a seed.
type observed struct {
	seed *corev1beta1.Seed
	// shoots run on the seed.
	shoots []corev1beta1.Shoot
	// credentials are the references of the bindings of these shoots.
	credentials []references.Ref
	// projects are the names of projects by their namespace.
	projects map[string]string
	// buckets are those that the seed reconciles or that its BackupEntries are in.
	buckets []corev1beta1.BackupBucket
	// deployments are those of the extensions that are installed in the seed.
	deployments []gardencorev1.ControllerDeployment
}

// grants are verbs by resource and name. The map is for one namespace.
type grants struct {
	secrets, internalSecrets map[string][]string
	// creates is whether the gardenlet creates Secrets, and createsInternal InternalSecrets.
	creates, createsInternal bool
}

// rules returns the rules of the Role for each namespace but that of the seed.
func (o *observed) rules() map[string][]rbacv1.PolicyRule {
	byNamespace := map[string]*grants{}
	in := func(namespace string) *grants {
		if byNamespace[namespace] == nil {
			byNamespace[namespace] = &grants{secrets: map[string][]string{}, internalSecrets: map[string][]string{}}
		}
		return byNamespace[namespace]
	}
	grant := func(verbs []string, refs ...references.Ref) {
		for _, ref := range refs {
			switch ref.Kind {
			case references.Secret:
				add(in(ref.Namespace).secrets, ref.Name, verbs)
			case references.InternalSecret:
				add(in(ref.Namespace).internalSecrets, ref.Name, verbs)
			}
		}
	}
	secret := func(namespace, name string) references.Ref {
		return references.Ref{Kind: references.Secret, Namespace: namespace, Name: name}
	}

	grant(read, references.Of(o.seed, references.Secret)...)
	grant(read, o.credentials...)
	for i := range o.deployments {
		grant(read, references.Of(&o.deployments[i], references.Secret)...)
	}
	for i := range o.buckets {
		bucket := &o.buckets[i]
		if ref := bucket.Spec.CredentialsRef; ref != nil && ref.Kind == references.Secret {
			grant(finalize, secret(ref.Namespace, ref.Name))
		}
		generated := secret(constants.GardenNamespace, constants.SecretPrefixGeneratedBackupBucket+bucket.Name)
		if bucket.Spec.SeedName == nil || *bucket.Spec.SeedName != o.seed.Name {
			grant(read, generated)
			continue
		}
		grant(own, generated)
		in(generated.Namespace).creates = true
	}
	for i := range o.shoots {
		shoot := &o.shoots[i]
		grant(read, references.Of(shoot, references.Secret)...)
		for _, suffix := range []string{
			constants.ShootProjectSecretSuffixCACluster, constants.ShootProjectSecretSuffixSSHKeypair, constants.ShootProjectSecretSuffixOldSSHKeypair,
		} {
			grant(own, secret(shoot.Namespace, shoot.Name+"."+suffix))
		}
		add(in(shoot.Namespace).internalSecrets, shoot.Name+"."+constants.ShootProjectSecretSuffixCAClient, own)
		in(shoot.Namespace).creates, in(shoot.Namespace).createsInternal = true, true
		if name := issuerSecret(shoot, o.projects[shoot.Namespace]); name != "" {
			grant(own, secret(constants.GardenerShootIssuerNamespace, name))
			in(constants.GardenerShootIssuerNamespace).creates = true
		}
	}

	rules := map[string][]rbacv1.PolicyRule{}
	for namespace, g := range byNamespace {
		rules[namespace] = slices.Concat(
			rulesOf(corev1.GroupName, "secrets", g.secrets, g.creates), rulesOf(corev1beta1.GroupName, "internalsecrets", g.internalSecrets, g.createsInternal))
	}
	rules[namespaceFor(o.seed.Name)] = []rbacv1.PolicyRule{
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets", "serviceaccounts"}, Verbs: everything},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
	}
	return rules
}

// add adds verbs on a name.
func add(to map[string][]string, name string, verbs []string) {
	all := append(slices.Clone(to[name]), verbs...)
	slices.Sort(all)
	to[name] = slices.Compact(all)
}

// rulesOf returns the rules for a resource: one for the names with the same verbs. They are sorted, so that a steady state is one.
func rulesOf(group, resource string, verbs map[string][]string, creates bool) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	if creates {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}})
	}
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		index := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool { return len(r.ResourceNames) > 0 && slices.Equal(r.Verbs, verbs[name]) })
		if index < 0 {
			index = len(rules)
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs[name]})
		}
		rules[index].ResourceNames = append(rules[index].ResourceNames, name)
	}
	slices.SortStableFunc(rules, func(a, b rbacv1.PolicyRule) int { return slices.Compare(a.Verbs, b.Verbs) })
	return rules
}

// issuerSecret returns the name of the Secret with the documents of the managed issuer of a Shoot, or nothing if it does not have one.
func issuerSecret(shoot *corev1beta1.Shoot, project string) string {
	if shoot.Annotations[constants.AuthenticationIssuer] != constants.AuthenticationIssuerManaged {
		return ""
	}
	return project + "--" + string(shoot.UID)
}

// objects returns the Role and RoleBinding of a Seed in a namespace.
func objects(seed *corev1beta1.Seed, namespace string, rules []rbacv1.PolicyRule) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{
		Namespace: namespace, Name: namePrefix + seed.Name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed"))},
	}
	return &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: constants.SeedUserNamePrefix + seed.Name}},
	}
}

func namespaceFor(seed string) string { return constants.SeedNamespaceNamePrefix + seed }

// bindingRef returns the binding of credentials that a Shoot refers to, and whether there is one.
func bindingRef(shoot *corev1beta1.Shoot) (references.Ref, bool) {
	kind, name := references.CredentialsBinding, ptr.Deref(shoot.Spec.CredentialsBindingName, "")
	if name == "" {
		kind, name = references.SecretBinding, ptr.Deref(shoot.Spec.SecretBindingName, "") //nolint:staticcheck // Shoots without a CredentialsBinding have one
	}
	return references.Ref{Kind: kind, Namespace: shoot.Namespace, Name: name}, name != ""
}
