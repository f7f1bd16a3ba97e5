package lifecycle

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootsystem"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

// resourceManagerResource is the ManagedResource with what the resource manager needs in the shoot.
const resourceManagerResource = "shoot-core-gardener-resource-manager"

// content are the tasks for what is in the shoot itself. It is written when there is an API server, and applied when there is a resource
// manager.
func (h *hosted) content() []flow.Task {
	return []flow.Task{
		task("shoot-core", "Writing what the cluster has", func(ctx context.Context) error {
			values, err := h.resourceManagerValues(1)
			if err != nil {
				return err
			}
			system, err := h.systemValues(ctx)
			if err != nil {
				return err
			}
			for name, objects := range map[string][]client.Object{
				shootsystem.ManagedResourceName: shootsystem.Objects(system), resourceManagerResource: resourcemanager.TargetObjects(values),
			} {
				if err := h.manage(ctx, name, objects...); err != nil {
					return err
				}
			}
			return nil
		}, "kube-apiserver-ready"), // it tells what may be read
		lasting(podsTimeout, task("shoot-core-applied", "Waiting for what the cluster has", func(ctx context.Context) error {
			return flow.Parallel(ctx, h.applied(shootsystem.ManagedResourceName), h.applied(resourceManagerResource))
		}, "shoot-core", "resource-manager")),
	}
}

// systemPools are the pools on whose nodes system components may run.
func systemPools(shoot *corev1beta1.Shoot) []corev1beta1.Worker {
	return slices.DeleteFunc(slices.Clone(shoot.Spec.Provider.Workers), func(pool corev1beta1.Worker) bool {
		return pool.Maximum == 0 || pool.SystemComponents != nil && !pool.SystemComponents.Allow
	})
}

// systemTolerations are what pods of system components need on nodes of these pools. The first pods are there before the first node, so
// that nobody can look at its taints then.
func systemTolerations(shoot *corev1beta1.Shoot) []corev1.Toleration {
	var tolerations []corev1.Toleration
	for _, pool := range systemPools(shoot) {
		for _, taint := range pool.Taints {
			toleration := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
			if !slices.Contains(tolerations, toleration) {
				tolerations = append(tolerations, toleration)
			}
		}
	}
	return tolerations
}

func (h *hosted) systemValues(ctx context.Context) (shootsystem.Values, error) {
	served, err := h.discover(ctx)
	if err != nil {
		return shootsystem.Values{}, err
	}
	spec := h.shoot.Spec
	v := shootsystem.Values{
		Resources:  served,
		Workerless: h.workerless(), ClusterIdentity: h.identity, EncryptedResources: h.encryption().Resources,
		Info: shootsystem.Info{
			ProjectName: h.project, ShootName: h.shoot.Name, Provider: spec.Provider.Type, Region: spec.Region, KubernetesVersion: spec.Kubernetes.Version,
			PodNetworks:     networks(h.shoot, func(n *corev1beta1.NetworkingStatus) []string { return n.Pods }),
			ServiceNetworks: networks(h.shoot, func(n *corev1beta1.NetworkingStatus) []string { return n.Services }),
			NodeNetworks:    networks(h.shoot, func(n *corev1beta1.NetworkingStatus) []string { return n.Nodes }),
		},
	}
	if spec.DNS != nil {
		v.Info.Domain = deref(spec.DNS.Domain)
	}
	if m := spec.Maintenance; m != nil && m.TimeWindow != nil {
		v.Info.MaintenanceBegin, v.Info.MaintenanceEnd = m.TimeWindow.Begin, m.TimeWindow.End
	}
	for _, e := range h.extensions {
		v.Info.Extensions = append(v.Info.Extensions, e.typ)
	}
	for _, pool := range systemPools(h.shoot) {
		v.Zones = append(v.Zones, pool.Zones...)
	}
	return v, nil
}

// grant lets the first users of an API server in: the programs of the control plane, and people. All of this is in ManagedResources too,
// but the resource manager cannot apply them before it may, and controllers that may do nothing give up.
func (h *hosted) grant(ctx context.Context, shoot client.Client) error {
	values, err := h.resourceManagerValues(1)
	if err != nil {
		return err
	}
	system, err := h.systemValues(ctx)
	if err != nil {
		return err
	}
	objects := []client.Object{&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:" + constants.SecretNameGardener, Labels: map[string]string{constants.ShootNoCleanup: "true"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: constants.SecretNameGardener}},
	}}
	for _, object := range append(shootsystem.Objects(system), resourcemanager.TargetObjects(values)...) {
		switch object.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding:
			objects = append(objects, object)
		}
	}
	writes := make([]func(context.Context) error, 0, len(objects))
	for _, object := range objects {
		writes = append(writes, func(ctx context.Context) error { return kube.Apply(ctx, shoot, owner, object) })
	}
	if err := flow.Parallel(ctx, writes...); err != nil {
		return fmt.Errorf("grant in the shoot: %w", err)
	}
	return nil
}
