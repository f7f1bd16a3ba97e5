package rights

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Check compares the roles of a cluster with the audit logs in directories. It returns the findings without a reason, and the reasons without a
// finding.
func Check(ctx context.Context, c client.Reader, accepted *Accepted, logs ...string) (left []Finding, idle []string, err error) {
	rbac, err := readRBAC(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	usage := NewUsage(accepted.UserAgents...)
	for _, dir := range logs {
		if err := usage.ReadDir(dir); err != nil {
			return nil, nil, err
		}
	}
	left, idle = accepted.Filter(Compare(rbac, usage, accepted.Classes))
	return left, idle, nil
}

// readRBAC reads the roles and bindings of a cluster.
func readRBAC(ctx context.Context, c client.Reader) (RBAC, error) {
	clusterRoles, clusterRoleBindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	roles, roleBindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	for _, list := range []client.ObjectList{clusterRoles, clusterRoleBindings, roles, roleBindings} {
		if err := c.List(ctx, list); err != nil {
			return RBAC{}, fmt.Errorf("list %T: %w", list, err)
		}
	}
	return RBAC{
		ClusterRoles: clusterRoles.Items, ClusterRoleBindings: clusterRoleBindings.Items, Roles: roles.Items, RoleBindings: roleBindings.Items,
	}, nil
}
