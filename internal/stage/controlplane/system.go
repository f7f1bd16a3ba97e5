package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootsystem"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

// objects are those that the cluster contains, by the name of their ManagedResource.
func (in Inputs) objects(ctx context.Context) (map[string][]client.Object, error) {
	values, err := in.ResourceManager(in.Replicas)
	if err != nil {
		return nil, err
	}
	all := map[string][]client.Object{ResourceManagerResource: resourcemanager.TargetObjects(values)}
	if in.Resources != nil {
		more, err := in.Resources()
		if err != nil {
			return nil, err
		}
		maps.Copy(all, more)
	}
	if in.System == nil {
		return all, nil
	}
	served, err := in.Run.Target.Resources(ctx)
	if err != nil {
		return nil, err
	}
	system, err := in.System(served)
	if err != nil {
		return nil, err
	}
	all[shootsystem.ManagedResourceName] = shootsystem.Objects(system)
	return all, nil
}

// deploySystem writes the ManagedResources. They are applied when gardener-resource-manager runs.
func (in Inputs) deploySystem(ctx context.Context) error {
	all, err := in.objects(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := in.Run.ApplyManaged(ctx, name, all[name]...); err != nil {
			return err
		}
	}
	return in.Run.Delete(ctx, in.Unused...)
}

// systemApplied waits until gardener-resource-manager has applied them.
func (in Inputs) systemApplied(ctx context.Context) error {
	all, err := in.objects(ctx)
	if err != nil {
		return err
	}
	waits := make([]func(context.Context) error, 0, len(all))
	for name := range all {
		waits = append(waits, func(ctx context.Context) error { return in.Run.ManagedApplied(ctx, name) })
	}
	return flow.Parallel(ctx, waits...)
}

// AccessBinding lets the users of Kubeconfigs do everything in the cluster.
func AccessBinding() client.Object {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:" + constants.SecretNameGardener, Labels: map[string]string{constants.ShootNoCleanup: "true"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: constants.SecretNameGardener}},
	}
}

// grant writes the RBAC objects for the first users of a kube-apiserver: control plane components, and users. All of them are in
// ManagedResources too, but gardener-resource-manager cannot apply these without permissions, and controllers without permissions crash.
func (in Inputs) grant(ctx context.Context, shootClient client.Client) error {
	all, err := in.objects(ctx)
	if err != nil {
		return err
	}
	objects := []client.Object{AccessBinding()}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, object := range all[name] {
			switch object.(type) {
			case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding:
				objects = append(objects, object)
			}
		}
	}
	writes := make([]func(context.Context) error, 0, len(objects))
	for _, object := range objects {
		writes = append(writes, func(ctx context.Context) error { return kube.Apply(ctx, shootClient, in.Run.FieldManager, object) })
	}
	if err := flow.Parallel(ctx, writes...); err != nil {
		return fmt.Errorf("write RBAC objects in the cluster: %w", err)
	}
	return nil
}
