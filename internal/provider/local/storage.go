package local

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/localstorage"
	"gardener.cloud/gardener/pkg/extension/generic"
)

// renderStorage returns generic.ControlPlane.StorageClasses. Without an image, or without nodes, a shoot has none.
func renderStorage(image string) generic.RenderControlPlane {
	return func(_ context.Context, in generic.ControlPlaneInput) ([]client.Object, error) {
		if image == "" || !withMachines(in.Cluster) {
			return nil, nil
		}
		return []client.Object{localstorage.Class()}, nil
	}
}

// renderShootComponents returns generic.ControlPlane.Shoot: the permissions of the cloud-controller-manager, and what provisions volumes on nodes.
func renderShootComponents(storageImage string) generic.RenderControlPlane {
	return func(ctx context.Context, in generic.ControlPlaneInput) ([]client.Object, error) {
		objects, err := renderCloudControllerAccess(ctx, in)
		if err != nil || storageImage == "" || !withMachines(in.Cluster) {
			return objects, err
		}
		return append(objects, localstorage.Objects(localstorage.Values{Image: storageImage, ClusterRole: "gardener.cloud:" + localstorage.Name})...), nil
	}
}
