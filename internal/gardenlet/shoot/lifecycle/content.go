package lifecycle

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/managedresource"
	"gardener.cloud/gardener/pkg/flow"
)

// systemResource is the ManagedResource with what every shoot has.
const systemResource = "shoot-core-system"

// content are the tasks for what is in the shoot itself. It is written at once, and applied when there is a resource manager.
func (h *hosted) content() []flow.Task {
	return []flow.Task{
		task("shoot-core", "Writing what the cluster has", func(ctx context.Context) error {
			objects, err := managedresource.Objects(h.SeedClient.Scheme(), managedresource.Values{
				Namespace: h.namespace, Name: systemResource, InjectLabels: map[string]string{constants.ShootNoCleanup: "true"},
			}, h.systemObjects()...)
			if err != nil {
				return err
			}
			return h.apply(ctx, objects...)
		}, "namespace"),
		lasting(podsTimeout, task("shoot-core-applied", "Waiting for what the cluster has", h.applied(systemResource), "shoot-core", "resource-manager")),
	}
}

// systemObjects are in every shoot.
func (h *hosted) systemObjects() []client.Object {
	objects := []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity},
			Immutable:  new(true),
			Data:       map[string]string{constants.ClusterIdentity: h.identity, "origin": constants.ClusterIdentityOriginShoot},
		},
	}
	for name, role := range map[string]string{
		"gardener.cloud:target:kube-controller-manager": "system:kube-controller-manager", "gardener.cloud:target:kube-controller-manager:auth-delegator": "system:auth-delegator",
	} {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{resourcesv1alpha1.ManagedBy: resourcesv1alpha1.GardenerManager}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: kubecontrollermanager.Name}},
		})
	}
	return objects
}
