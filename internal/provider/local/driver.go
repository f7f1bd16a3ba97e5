package local

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/pkg/extension/webhook"
	"gardener.cloud/gardener/pkg/extension/webhook/controlplane"
)

// driverName is the name of the container in the pods of the machine-controller-manager that creates local machines, of its command, and of its Role.
const driverName = machinecontrollermanager.Name + "-" + Name

// DriverRole lets the machine-controller-manager in a namespace create machines, which are pods with their user data in Secrets. What all drivers need,
// the gardenlet grants it.
func DriverRole(namespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: driverName}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{workload.Rule("", "pods", "create delete get list patch watch")}}
	return role, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: driverName},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: machinecontrollermanager.Name}},
	}
}

// applyDriverRole applies it.
func applyDriverRole(ctx context.Context, c client.Client, namespace string) error {
	role, binding := DriverRole(namespace)
	return kube.Apply(ctx, c, Name, role, binding)
}

// addWebhooks adds the webhook that adds the container with the driver to machine-controller-managers.
func addWebhooks(p *process.Process, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	server := c.Server.Webhooks
	return errors.Join(
		webhook.Add(p, webhook.Options{
			Name: Name, Namespace: c.Namespace, Service: server.Service, URL: server.URL, BindAddress: server.BindAddress, Port: server.Port,
			Webhooks: []webhook.Webhook{controlplane.Webhook(p, controlplane.Options{Type: Type, Ensurer: ensurer(c.Images.Gardener)})},
		}),
		p.Add(&adoption{client: p.GetClient(), reader: p.GetAPIReader(), clock: clock.RealClock{}}),
	)
}

// ensurer changes what the gardenlet deploys for control planes.
func ensurer(image string) controlplane.Ensurer {
	return controlplane.Ensurer{
		MachineControllerManager: func(_ context.Context, shoot controlplane.Shoot, deployment *appsv1.Deployment) error {
			if image == "" {
				return errors.New("provider-local is configured without the image of Gardener, which has the driver for machines")
			}
			controlplane.SetContainer(&deployment.Spec.Template.Spec, driverContainer(image, shoot.Namespace))
			return nil
		},
		MachineControllerManagerAutoscaler: func(_ context.Context, shoot controlplane.Shoot, vpa *unstructured.Unstructured) error {
			return controlplane.SetPolicy(vpa, driverContainer(image, shoot.Namespace))
		},
	}
}

func driverContainer(image, namespace string) corev1.Container {
	container := controlplane.MachineController(Name, image, namespace)
	container.Command = []string{operatingsystemconfig.NodeAgentPathInImage, driverName}
	container.Env = []corev1.EnvVar{workload.PodName()}
	return container
}

// deleteDriverRole deletes it.
func deleteDriverRole(ctx context.Context, c client.Client, namespace string) error {
	role, binding := DriverRole(namespace)
	for _, object := range []client.Object{binding, role} {
		if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T %q: %w", object, object.GetName(), err)
		}
	}
	return nil
}
