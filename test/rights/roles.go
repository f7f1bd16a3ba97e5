package rights

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// bootstrapLabel is on bindings that a kube-apiserver creates.
const bootstrapLabel = "kubernetes.io/bootstrapping"

// serviceAccountPrefix is that of the names of users that are ServiceAccounts.
const serviceAccountPrefix = "system:serviceaccount:"

// RBAC is the (Cluster)Roles and bindings of a cluster.
type RBAC struct {
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding
}

// Identity is a subject of bindings.
type Identity struct {
	// Kind is ServiceAccount, User or Group.
	Kind string
	// Name is namespace and name of a ServiceAccount, and the name of others.
	Name string
}

// String returns kind and name.
func (i Identity) String() string { return i.Kind + " " + i.Name }

// identityOf returns the identity of a user who made a request.
func identityOf(user string) Identity {
	if account, ok := strings.CutPrefix(user, serviceAccountPrefix); ok {
		return Identity{Kind: rbacv1.ServiceAccountKind, Name: strings.Replace(account, ":", "/", 1)}
	}
	return Identity{Kind: rbacv1.UserKind, Name: user}
}

// subjectIdentity returns the identity of a subject of a binding in a namespace.
func subjectIdentity(subject rbacv1.Subject, namespace string) Identity {
	switch {
	case subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace != "":
		return Identity{Kind: subject.Kind, Name: subject.Namespace + "/" + subject.Name}
	case subject.Kind == rbacv1.ServiceAccountKind:
		return Identity{Kind: subject.Kind, Name: namespace + "/" + subject.Name}
	case subject.Kind == rbacv1.UserKind:
		return identityOf(subject.Name)
	default:
		return Identity{Kind: subject.Kind, Name: subject.Name}
	}
}

// grant is a rule that an identity has.
type grant struct {
	identity Identity
	// role names the role, such as "ClusterRole a" or "Role namespace/a".
	role string
	// namespace is that in which the rule holds, empty if it holds in all.
	namespace string
	rule      rbacv1.PolicyRule
}

// grants returns all rules of all identities, but those that a kube-apiserver itself grants.
func (r RBAC) grants() []grant {
	var all []grant
	add := func(role, namespace string, subjects []rbacv1.Subject, rules []rbacv1.PolicyRule) {
		for _, subject := range subjects {
			for _, rule := range rules {
				all = append(all, grant{identity: subjectIdentity(subject, namespace), role: role, namespace: namespace, rule: rule})
			}
		}
	}
	clusterRole := func(name string) []rbacv1.PolicyRule {
		if i := slices.IndexFunc(r.ClusterRoles, func(role rbacv1.ClusterRole) bool { return role.Name == name }); i >= 0 {
			return r.ClusterRoles[i].Rules
		}
		return nil
	}
	for _, binding := range r.ClusterRoleBindings {
		if binding.Labels[bootstrapLabel] == "" {
			add("ClusterRole "+binding.RoleRef.Name, "", binding.Subjects, clusterRole(binding.RoleRef.Name))
		}
	}
	for _, binding := range r.RoleBindings {
		if binding.Labels[bootstrapLabel] != "" {
			continue
		}
		if binding.RoleRef.Kind == "ClusterRole" {
			add("ClusterRole "+binding.RoleRef.Name, binding.Namespace, binding.Subjects, clusterRole(binding.RoleRef.Name))
			continue
		}
		if i := slices.IndexFunc(r.Roles, func(role rbacv1.Role) bool {
			return role.Namespace == binding.Namespace && role.Name == binding.RoleRef.Name
		}); i >= 0 {
			add("Role "+binding.Namespace+"/"+binding.RoleRef.Name, binding.Namespace, binding.Subjects, r.Roles[i].Rules)
		}
	}
	return all
}

// right is the smallest part of a rule: one verb for one resource or path.
type right struct {
	verb, apiGroup, resource, path string
}

// rights splits a rule.
func rights(rule rbacv1.PolicyRule) []right {
	var all []right
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			all = append(all, right{verb: verb, path: path})
		}
		for _, apiGroup := range rule.APIGroups {
			for _, resource := range rule.Resources {
				all = append(all, right{verb: verb, apiGroup: apiGroup, resource: resource})
			}
		}
	}
	return all
}

// hasWildcard reports whether a rule grants what it does not name.
func hasWildcard(rule rbacv1.PolicyRule) bool {
	return slices.Contains(rule.Verbs, rbacv1.VerbAll) || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) ||
		slices.ContainsFunc(rule.Resources, func(resource string) bool { return strings.HasPrefix(resource, rbacv1.ResourceAll) }) ||
		slices.Contains(rule.NonResourceURLs, rbacv1.NonResourceAll)
}

// includes has for a verb the other verbs with which one can do the same: who lists objects gets each of them, and an informer lists or watches,
// as the server can. A right to the verb then adds nothing to what was used.
var includes = map[string][]string{
	"get": {"list", "watch"}, "list": {"watch"}, "watch": {"list"}, "patch": {"update"}, "update": {"patch"}, "delete": {"deletecollection"},
	"deletecollection": {"delete"},
}

// justifiedBy reports whether a request needs a right for objects with the names, or for all if there are none, or one that allows the same.
func (r right) justifiedBy(request Request, names []string) bool {
	if r.verb != rbacv1.VerbAll && r.verb != request.Verb && !slices.Contains(includes[r.verb], request.Verb) {
		return false
	}
	if request.Resource == "" {
		prefix, open := strings.CutSuffix(r.path, "*")
		return r.path == request.Path || open && strings.HasPrefix(request.Path, prefix)
	}
	if r.path != "" || r.apiGroup != rbacv1.APIGroupAll && r.apiGroup != request.APIGroup {
		return false
	}
	if len(names) > 0 && !slices.Contains(names, request.Name) {
		return false
	}
	if r.resource == rbacv1.ResourceAll || r.resource == request.Resource {
		return true
	}
	subresource, every := strings.CutPrefix(r.resource, "*/")
	return every && strings.HasSuffix(request.Resource, "/"+subresource)
}
