package controlplane

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootsystem"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

// objects are those that every cluster contains, and those that gardener-resource-manager needs in it.
func (in Inputs) objects(ctx context.Context) (ofSystem, ofResourceManager []client.Object, err error) {
	values, err := in.ResourceManager(in.Replicas)
	if err != nil {
		return nil, nil, err
	}
	served, err := in.Run.Target.Resources(ctx)
	if err != nil {
		return nil, nil, err
	}
	system, err := in.System(served)
	if err != nil {
		return nil, nil, err
	}
	return shootsystem.Objects(system), resourcemanager.TargetObjects(values), nil
}

// deploySystem writes the ManagedResources. They are applied when gardener-resource-manager runs.
func (in Inputs) deploySystem(ctx context.Context) error {
	system, resourceManager, err := in.objects(ctx)
	if err != nil {
		return err
	}
	if err := in.Run.ApplyManaged(ctx, shootsystem.ManagedResourceName, system...); err != nil {
		return err
	}
	return in.Run.ApplyManaged(ctx, resourceManagerResource, resourceManager...)
}

// grant writes the RBAC objects for the first users of a kube-apiserver: control plane components, and users. All of them are in
// ManagedResources too, but gardener-resource-manager cannot apply these without permissions, and controllers without permissions crash.
func (in Inputs) grant(ctx context.Context, shootClient client.Client) error {
	system, resourceManager, err := in.objects(ctx)
	if err != nil {
		return err
	}
	objects := []client.Object{&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:" + constants.SecretNameGardener, Labels: map[string]string{constants.ShootNoCleanup: "true"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: constants.SecretNameGardener}},
	}}
	for _, object := range append(system, resourceManager...) {
		switch object.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding:
			objects = append(objects, object)
		}
	}
	writes := make([]func(context.Context) error, 0, len(objects))
	for _, object := range objects {
		writes = append(writes, func(ctx context.Context) error { return kube.Apply(ctx, shootClient, in.Run.FieldManager, object) })
	}
	if err := flow.Parallel(ctx, writes...); err != nil {
		return fmt.Errorf("write RBAC objects in the shoot: %w", err)
	}
	return nil
}
