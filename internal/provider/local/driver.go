package local

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/pkg/extension/webhook"
	"gardener.cloud/gardener/pkg/extension/webhook/controlplane"
)

// driverName is the name of the container in the pods of the machine-controller-manager that creates local machines, of its command, and of its Role.
const driverName = machinecontrollermanager.Name + "-" + Name

const (
	// credentialsDir is where the driver has the credentials of the shoot.
	credentialsDir = "/var/run/secrets/gardener.cloud/infrastructure"
	// checksumAnnotation replaces the pods with the driver when the kubeconfig changes.
	checksumAnnotation = "checksum/secret-cloudprovider"
)

// DriverRole lets the machine-controller-manager of a control plane create machines in a namespace, which are pods with their user data in Secrets. What
// all drivers need in the namespace of the control plane, the gardenlet grants it.
func DriverRole(controlPlane, namespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: driverName}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		workload.Rule("", "pods", "create delete get list patch watch"), workload.Rule("", "secrets", "create delete get patch"),
	}}
	return role, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: driverName},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: controlPlane, Name: machinecontrollermanager.Name}},
	}
}

// addWebhooks adds the webhook that adds the container with the driver to machine-controller-managers.
func addWebhooks(p *process.Process, places *places, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	server := c.Server.Webhooks
	return errors.Join(
		webhook.Add(p, webhook.Options{
			Name: Name, Namespace: c.Namespace, Service: server.Service, URL: server.URL, BindAddress: server.BindAddress, Port: server.Port,
			Webhooks: []webhook.Webhook{controlplane.Webhook(p, controlplane.Options{Type: Type, Ensurer: ensurer(c.Images.Gardener, places)})},
		}),
		p.Add(&adoption{client: p.GetClient(), reader: p.GetAPIReader(), clock: clock.RealClock{}}),
	)
}

// ensurer changes what the gardenlet deploys for control planes.
func ensurer(image string, places *places) controlplane.Ensurer {
	return controlplane.Ensurer{
		MachineControllerManager: func(ctx context.Context, shoot controlplane.Shoot, deployment *appsv1.Deployment) error {
			if image == "" {
				return errors.New("provider-local is configured without the image of Gardener, which has the driver for machines")
			}
			access, err := places.access(ctx, shoot.Namespace, corev1.SecretReference{Namespace: shoot.Namespace, Name: constants.SecretNameCloudProvider})
			if err != nil {
				return err
			}
			setDriver(&deployment.Spec.Template, image, shoot.Namespace, access)
			return nil
		},
		MachineControllerManagerAutoscaler: func(_ context.Context, shoot controlplane.Shoot, vpa *unstructured.Unstructured) error {
			return controlplane.SetPolicy(vpa, driverContainer(image, shoot.Namespace))
		},
	}
}

// setDriver adds the container with the driver.
func setDriver(template *corev1.PodTemplateSpec, image, namespace string, access driverAccess) {
	container := driverContainer(image, namespace)
	access.addTo(template, &container)
	controlplane.SetContainer(&template.Spec, container)
}

// addTo gives a container access to another cluster with the machines: it has the credentials of the shoot as files, and its pod a checksum, as they are read
// when it starts.
func (a driverAccess) addTo(template *corev1.PodTemplateSpec, container *corev1.Container) {
	if len(a.kubeconfig) == 0 {
		return
	}
	container.Args = append(container.Args, "--infrastructure-kubeconfig="+credentialsDir+"/"+kubeconfigKey)
	if a.cluster != "" {
		container.Args = append(container.Args, "--infrastructure-cluster="+string(a.cluster))
	}
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: constants.SecretNameCloudProvider, MountPath: credentialsDir, ReadOnly: true})
	controlplane.SetVolume(&template.Spec, corev1.Volume{Name: constants.SecretNameCloudProvider, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: constants.SecretNameCloudProvider},
	}})
	for _, label := range []string{constants.NetworkPolicyToPublicNetworks, constants.NetworkPolicyToPrivateNetworks} {
		metav1.SetMetaDataLabel(&template.ObjectMeta, label, constants.NetworkPolicyAllowed)
	}
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, checksumAnnotation, workload.Checksum(string(a.kubeconfig)))
}

func driverContainer(image, namespace string) corev1.Container {
	container := controlplane.MachineController(Name, image, namespace)
	container.Command = []string{operatingsystemconfig.NodeAgentPathInImage, driverName}
	container.Env = []corev1.EnvVar{workload.PodName()}
	return container
}
