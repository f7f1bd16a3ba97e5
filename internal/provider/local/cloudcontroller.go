package local

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/localcloudcontroller"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
)

// renderCloudController returns generic.ControlPlane.Components. A shoot without workers has none.
func renderCloudController(image string, access func(ctx context.Context, controlPlane string, ref corev1.SecretReference) (driverAccess, error)) generic.RenderControlPlane {
	return func(ctx context.Context, in generic.ControlPlaneInput) ([]client.Object, error) {
		if !withMachines(in.Cluster) {
			return nil, nil
		}
		if image == "" {
			return nil, errors.New("provider-local is configured without the image of Gardener, which has the cloud-controller-manager")
		}
		to, err := access(ctx, in.ControlPlane.Namespace, in.ControlPlane.Spec.SecretRef)
		if err != nil {
			return nil, err
		}
		objects := localcloudcontroller.Objects(localcloudcontroller.Values{
			Namespace: in.ControlPlane.Namespace, Image: image, Replicas: in.Replicas(1), GenericKubeconfig: genericKubeconfigOf(in.Cluster.Annotations),
		})
		if len(to.kubeconfig) == 0 {
			role, binding := localcloudcontroller.Role(in.ControlPlane.Namespace)
			return append(objects, role, binding), nil
		}
		for _, object := range objects {
			if deployment, ok := object.(*appsv1.Deployment); ok {
				to.addTo(&deployment.Spec.Template, &deployment.Spec.Template.Spec.Containers[0])
			}
		}
		return objects, nil
	}
}

// genericKubeconfigOf returns the name of the Secret with the kubeconfig that components of a control plane share.
func genericKubeconfigOf(cluster map[string]string) string {
	if name := cluster[extensionsv1alpha1.AnnotationGenericKubeconfigSecretName]; name != "" {
		return name
	}
	return constants.SecretNameGenericTokenKubeconfig
}

// renderCloudControllerAccess returns its permissions in the shoot.
func renderCloudControllerAccess(_ context.Context, in generic.ControlPlaneInput) ([]client.Object, error) {
	if !withMachines(in.Cluster) {
		return nil, nil
	}
	return localcloudcontroller.TargetObjects(), nil
}

// withMachines says whether a shoot has workers.
func withMachines(cluster *extension.Cluster) bool {
	return cluster != nil && cluster.Shoot != nil && len(cluster.Shoot.Spec.Provider.Workers) > 0
}
