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
	"gardener.cloud/gardener/internal/controllermanager/uses"
)

// Names of ClusterRoles that are the same for all Projects. They say what members may do in the namespace; we only bind them.
const (
	memberRole                = "gardener.cloud:system:project-member"
	viewerRole                = "gardener.cloud:system:project-viewer"
	serviceAccountManagerRole = "gardener.cloud:system:project-serviceaccountmanager"
)

// Prefixes of the names of what belongs to a single Project; its name follows.
const (
	ownerPrefix     = "gardener.cloud:system:project:"
	memberPrefix    = "gardener.cloud:system:project-member:"
	managerPrefix   = "gardener.cloud:system:project-uam:"
	viewerPrefix    = "gardener.cloud:system:project-viewer:"
	extensionPrefix = "gardener.cloud:extension:project:"
)

// verbManageMembers is what it takes to change who is a member.
const verbManageMembers = "manage-members"

// rbac returns what lets the members of a Project in. For what is in the namespace there are RoleBindings; for the Project itself and
// its Namespace, which are not in it, ClusterRoles of the Project. An extension role is the sum of all ClusterRoles that extensions
// label for it.
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

func (r *reconciler) ensureClusterRole(ctx context.Context, project *corev1beta1.Project, want *rbacv1.ClusterRole) error {
	return ensure(ctx, r.client, project, &rbacv1.ClusterRole{ObjectMeta: named(want)}, func(have *rbacv1.ClusterRole) {
		have.Labels = withAll(have.Labels, want.Labels)
		have.AggregationRule = want.AggregationRule
		if want.AggregationRule == nil { // otherwise the kube-controller-manager writes the rules
			have.Rules = want.Rules
		}
	})
}

func (r *reconciler) ensureClusterRoleBinding(ctx context.Context, project *corev1beta1.Project, want *rbacv1.ClusterRoleBinding) error {
	return ensure(ctx, r.client, project, &rbacv1.ClusterRoleBinding{ObjectMeta: named(want)}, func(have *rbacv1.ClusterRoleBinding) {
		have.RoleRef, have.Subjects = want.RoleRef, want.Subjects
	})
}

func (r *reconciler) ensureRoleBinding(ctx context.Context, project *corev1beta1.Project, want *rbacv1.RoleBinding) error {
	return ensure(ctx, r.client, project, &rbacv1.RoleBinding{ObjectMeta: named(want)}, func(have *rbacv1.RoleBinding) {
		have.Labels = withAll(have.Labels, want.Labels)
		have.RoleRef, have.Subjects = want.RoleRef, want.Subjects
	})
}

// deleteStaleExtensionRoles deletes what is there for extension roles that no member has any more.
func (r *reconciler) deleteStaleExtensionRoles(ctx context.Context, project *corev1beta1.Project, wanted []*rbacv1.ClusterRole) error {
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.RoleBindingList{}
	if err := r.client.List(ctx, roles, client.MatchingFields{uses.ExtensionRoleByProject: project.Name}); err != nil {
		return fmt.Errorf("list extension roles: %w", err)
	}
	err := r.client.List(ctx, bindings, client.InNamespace(*project.Spec.Namespace), client.MatchingLabels{
		constants.GardenRole: constants.GardenRoleExtensionProjectRole, constants.ProjectName: project.Name,
	})
	if err != nil {
		return fmt.Errorf("list bindings of extension roles: %w", err)
	}
	var stale []client.Object
	isStale := func(obj client.Object) {
		isWanted := slices.ContainsFunc(wanted, func(role *rbacv1.ClusterRole) bool { return role.Name == obj.GetName() })
		if !isWanted && strings.HasPrefix(obj.GetName(), extensionPrefix+project.Name+":") {
			stale = append(stale, obj)
		}
	}
	for i := range bindings.Items {
		isStale(&bindings.Items[i])
	}
	for i := range roles.Items {
		isStale(&roles.Items[i])
	}
	for _, obj := range stale {
		if err := client.IgnoreNotFound(r.client.Delete(ctx, obj)); err != nil {
			return fmt.Errorf("delete %T %q: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

// ensure creates an object or patches it, if it differs from what apply makes of it. The Project owns it.
func ensure[T client.Object](ctx context.Context, c client.Client, project *corev1beta1.Project, obj T, apply func(T)) error {
	complete := func(obj T) {
		apply(obj)
		obj.SetOwnerReferences(withOwner(obj.GetOwnerReferences(), project))
	}
	switch err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); {
	case apierrors.IsNotFound(err):
		complete(obj)
		if err := c.Create(ctx, obj); err != nil {
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
	err := c.Patch(ctx, obj, client.MergeFrom(before))
	if apierrors.IsInvalid(err) {
		// Which role is bound cannot be changed. When it is gone, it is made anew.
		err = c.Delete(ctx, before, client.Preconditions{UID: new(before.GetUID())})
	}
	if err != nil {
		return fmt.Errorf("change %T %q: %w", obj, obj.GetName(), err)
	}
	return nil
}

func named(obj client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// withAll returns a map with all entries of another.
func withAll(have, want map[string]string) map[string]string {
	if len(want) == 0 {
		return have
	}
	merged := map[string]string{}
	maps.Copy(merged, have)
	maps.Copy(merged, want)
	return merged
}
