package project

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
)

// Names of ClusterRoles that all Projects share. They grant permissions in the namespace; the controller only binds them.
const (
	memberRole                = "gardener.cloud:system:project-member"
	viewerRole                = "gardener.cloud:system:project-viewer"
	serviceAccountManagerRole = "gardener.cloud:system:project-serviceaccountmanager"
)

// Prefixes of the names of objects that belong to a single Project; the name of the Project follows.
const (
	ownerPrefix     = "gardener.cloud:system:project:"
	memberPrefix    = "gardener.cloud:system:project-member:"
	managerPrefix   = "gardener.cloud:system:project-uam:"
	viewerPrefix    = "gardener.cloud:system:project-viewer:"
	extensionPrefix = "gardener.cloud:extension:project:"
)

// verbManageMembers is the verb for changing the members of a Project.
const verbManageMembers = "manage-members"

// rbac returns the RBAC objects for the members of a Project: RoleBindings for the objects in its namespace, and ClusterRoles with their
// bindings for the Project and the Namespace themselves, which are cluster-scoped. An extension role aggregates all ClusterRoles that
// extensions label for it.
func rbac(project *corev1beta1.Project) (roles []*rbacv1.ClusterRole, bindings []*rbacv1.ClusterRoleBinding, roleBindings []*rbacv1.RoleBinding) {
	members := membersByRole(project)
	aboutProject := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{corev1beta1.GroupName}, Resources: []string{"projects"}, ResourceNames: []string{project.Name}, Verbs: verbs,
		}
	}
	seeNamespace := rbacv1.PolicyRule{
		APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"}, ResourceNames: []string{*project.Spec.Namespace}, Verbs: []string{"get"},
	}
	forProject := func(prefix string, subjects []rbacv1.Subject, rules ...rbacv1.PolicyRule) {
		meta := metav1.ObjectMeta{Name: prefix + project.Name}
		roles = append(roles, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
		bindings = append(bindings, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: clusterRole(meta.Name), Subjects: subjects})
	}
	inNamespace := func(role string, labels map[string]string, subjects []rbacv1.Subject) {
		roleBindings = append(roleBindings, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: *project.Spec.Namespace, Name: role, Labels: labels}, RoleRef: clusterRole(role), Subjects: subjects,
		})
	}

	forProject(ownerPrefix, members[constants.ProjectMemberOwner], seeNamespace, aboutProject("get", "patch", "update", "delete", verbManageMembers))
	forProject(memberPrefix, members[constants.ProjectMemberAdmin], seeNamespace, aboutProject("get", "patch", "update", "delete"))
	forProject(managerPrefix, members[constants.ProjectMemberUserAccessManager], aboutProject("get", "patch", "update", verbManageMembers))
	forProject(viewerPrefix, members[constants.ProjectMemberViewer], seeNamespace, aboutProject("get"))
	inNamespace(memberRole, nil, members[constants.ProjectMemberAdmin])
	inNamespace(serviceAccountManagerRole, nil, members[constants.ProjectMemberServiceAccountManager])
	inNamespace(viewerRole, nil, members[constants.ProjectMemberViewer])

	for _, role := range slices.Sorted(maps.Keys(members)) {
		extension, ok := strings.CutPrefix(role, constants.ProjectMemberExtensionPrefix)
		if !ok {
			continue
		}
		meta := metav1.ObjectMeta{
			Name: extensionPrefix + project.Name + ":" + extension,
			Labels: map[string]string{
				constants.GardenRole: constants.GardenRoleExtensionProjectRole, constants.ProjectName: project.Name,
			},
		}
		roles = append(roles, &rbacv1.ClusterRole{
			ObjectMeta: meta,
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
				{MatchLabels: map[string]string{constants.AggregateToExtensionRole: extension}},
			}},
		})
		inNamespace(meta.Name, meta.Labels, members[role])
	}
	return roles, bindings, roleBindings
}

// membersByRole returns the members with each role, in the order of the spec. The owner has the roles of administrators and of managers
// of service accounts as well; to manage members is part of the owner's own role.
func membersByRole(project *corev1beta1.Project) map[string][]rbacv1.Subject {
	members := map[string][]rbacv1.Subject{}
	add := func(subject rbacv1.Subject, roles ...string) {
		for _, role := range roles {
			if !slices.Contains(members[role], subject) {
				members[role] = append(members[role], subject)
			}
		}
	}
	ofOwner := []string{constants.ProjectMemberOwner, constants.ProjectMemberAdmin, constants.ProjectMemberServiceAccountManager}
	for _, member := range project.Spec.Members {
		for _, role := range append([]string{member.Role}, member.Roles...) {
			switch role {
			case "":
			case constants.ProjectMemberOwner:
				add(member.Subject, ofOwner...)
			default:
				add(member.Subject, role)
			}
		}
	}
	if owner := project.Spec.Owner; owner != nil {
		add(*owner, ofOwner...)
	}
	return members
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func (r *reconciler) ensureClusterRole(ctx context.Context, project *corev1beta1.Project, desired *rbacv1.ClusterRole) error {
	return ensure(ctx, r.gardenCache, project, &rbacv1.ClusterRole{ObjectMeta: named(desired)}, func(existing *rbacv1.ClusterRole) {
		existing.Labels = withAll(existing.Labels, desired.Labels)
		existing.AggregationRule = desired.AggregationRule
		if desired.AggregationRule == nil { // of an aggregated role, the kube-controller-manager writes the rules
			existing.Rules = desired.Rules
		}
	})
}

func (r *reconciler) ensureClusterRoleBinding(ctx context.Context, project *corev1beta1.Project, desired *rbacv1.ClusterRoleBinding) error {
	return ensure(ctx, r.gardenCache, project, &rbacv1.ClusterRoleBinding{ObjectMeta: named(desired)}, func(existing *rbacv1.ClusterRoleBinding) {
		existing.RoleRef, existing.Subjects = desired.RoleRef, desired.Subjects
	})
}

func (r *reconciler) ensureRoleBinding(ctx context.Context, project *corev1beta1.Project, desired *rbacv1.RoleBinding) error {
	return ensure(ctx, r.gardenCache, project, &rbacv1.RoleBinding{ObjectMeta: named(desired)}, func(existing *rbacv1.RoleBinding) {
		existing.Labels = withAll(existing.Labels, desired.Labels)
		existing.RoleRef, existing.Subjects = desired.RoleRef, desired.Subjects
	})
}

// deleteStaleExtensionRoles deletes the roles and bindings of extension roles that no member has any more.
func (r *reconciler) deleteStaleExtensionRoles(ctx context.Context, project *corev1beta1.Project, desired []*rbacv1.ClusterRole) error {
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.RoleBindingList{}
	if err := r.gardenCache.List(ctx, roles, references.To(references.RefOf(references.Project, project))); err != nil {
		return fmt.Errorf("list extension roles: %w", err)
	}
	err := r.gardenCache.List(ctx, bindings, client.InNamespace(*project.Spec.Namespace), client.MatchingLabels{
		constants.GardenRole: constants.GardenRoleExtensionProjectRole, constants.ProjectName: project.Name,
	})
	if err != nil {
		return fmt.Errorf("list bindings of extension roles: %w", err)
	}
	var stale []client.Object
	check := func(obj client.Object) {
		isDesired := slices.ContainsFunc(desired, func(role *rbacv1.ClusterRole) bool { return role.Name == obj.GetName() })
		if !isDesired && strings.HasPrefix(obj.GetName(), extensionPrefix+project.Name+":") {
			stale = append(stale, obj)
		}
	}
	for i := range bindings.Items {
		check(&bindings.Items[i])
	}
	for i := range roles.Items {
		check(&roles.Items[i])
	}
	for _, obj := range stale {
		if err := client.IgnoreNotFound(r.gardenCache.Delete(ctx, obj)); err != nil {
			return fmt.Errorf("delete %T %q: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

// ensure creates an object, or patches it if apply changes it. Its owner is the Project.
func ensure[T client.Object](ctx context.Context, gardenCache client.Client, project *corev1beta1.Project, obj T, apply func(T)) error {
	complete := func(obj T) {
		apply(obj)
		obj.SetOwnerReferences(withOwner(obj.GetOwnerReferences(), project))
	}
	switch err := gardenCache.Get(ctx, client.ObjectKeyFromObject(obj), obj); {
	case apierrors.IsNotFound(err):
		complete(obj)
		if err := gardenCache.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %T %q: %w", obj, obj.GetName(), err)
		}
		return nil
	case err != nil:
		return err
	}
	before := obj.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has its original's type
	complete(obj)
	if apiequality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	err := gardenCache.Patch(ctx, obj, client.MergeFrom(before))
	if apierrors.IsInvalid(err) {
		// The role of a binding is immutable. The deletion of the binding is an event, after which it is created again.
		err = gardenCache.Delete(ctx, before, client.Preconditions{UID: new(before.GetUID())})
	}
	if err != nil {
		return fmt.Errorf("update %T %q: %w", obj, obj.GetName(), err)
	}
	return nil
}

func named(obj client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// withAll returns a map with the entries of two maps; those of the second take precedence.
func withAll(existing, desired map[string]string) map[string]string {
	if len(desired) == 0 {
		return existing
	}
	merged := map[string]string{}
	maps.Copy(merged, existing)
	maps.Copy(merged, desired)
	return merged
}
