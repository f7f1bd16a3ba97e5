package gardenlet

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
)

const (
	// placementsName is the name of the ConfigMap in the namespace "garden" of the runtime cluster that records to which cluster the gardenlet of each
	// seed belongs. A Gardenlet does not say it for long, as the reference to its kubeconfig is cleared, and who can write Gardenlets must not choose
	// the runtime cluster.
	placementsName = "gardenlet-placements"
	// inRuntime and elsewhere are the values in it.
	inRuntime, elsewhere = "runtime-cluster", "other-cluster"
)

// placed returns to which cluster a gardenlet belongs, by what was recorded, its kubeconfig, and whether it has a Seed already. It is empty before
// the first deployment. An annotation of the Garden may declare it: who can write that may choose the runtime cluster.
func placed(name, recorded, declared string, kubeconfig, seed bool, runtime release.Runs) string {
	switch {
	case kubeconfig:
		return elsewhere
	case recorded != "" || !seed:
		return recorded
	case runtime.Any && runtime.Seed == name, declared == name:
		return inRuntime
	}
	return elsewhere // the operator has not deployed it
}

// mayPlace returns an error if a gardenlet must not be deployed into the runtime cluster. Its name may be declared by an annotation of the Garden;
// otherwise the first one is accepted.
func mayPlace(name, declared string, recorded map[string]string, runtime release.Runs) error {
	declare := fmt.Sprintf("annotate the Garden with %s=%s if it belongs there", operatorv1alpha1.AnnotationRuntimeClusterGardenlet, name)
	switch {
	case runtime.Any && runtime.Seed != "" && runtime.Seed != name:
		return fmt.Errorf("the gardenlet of seed %q already runs in the cluster: it cannot be seed %q too", runtime.Seed, name)
	case recorded[name] == elsewhere:
		return fmt.Errorf("gardenlet %q belongs to another cluster, so it is not deployed into the runtime cluster: set spec.kubeconfigSecretRef, or %s, and "+
			"remove it from ConfigMap %s/%s in the runtime cluster", name, declare, constants.GardenNamespace, placementsName)
	case declared == name:
		return nil
	case declared != "":
		return fmt.Errorf("annotation %s of the Garden names gardenlet %q, so %q is not deployed into the runtime cluster: set spec.kubeconfigSecretRef",
			operatorv1alpha1.AnnotationRuntimeClusterGardenlet, declared, name)
	case recorded[name] == inRuntime:
		return nil
	case runtime.Any && runtime.Seed == "":
		return fmt.Errorf("a gardenlet already runs in the runtime cluster, and its configuration does not say for which seed: set spec.kubeconfigSecretRef of %q, or %s",
			name, declare)
	}
	for _, other := range slices.Sorted(maps.Keys(recorded)) {
		if other != name && recorded[other] == inRuntime {
			return fmt.Errorf("gardenlet %q belongs to the runtime cluster, so %q is not deployed into it: set spec.kubeconfigSecretRef, or %s", other, name, declare)
		}
	}
	return nil
}

// placements returns the ConfigMap with what was recorded. It has no resource version if it does not exist.
func (r *reconciler) placements(ctx context.Context) (*corev1.ConfigMap, error) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: placementsName}}
	if err := r.runtimeAPI.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read ConfigMap %q: %w", client.ObjectKeyFromObject(config), err)
	}
	return config, nil
}

// place records to which cluster a gardenlet belongs. One gardenlet belongs to the runtime cluster.
func (r *reconciler) place(ctx context.Context, config *corev1.ConfigMap, name, where string) error {
	if where == "" || config.Data[name] == where {
		return nil
	}
	if config.Data == nil {
		config.Data = map[string]string{}
	}
	if where == inRuntime {
		maps.DeleteFunc(config.Data, func(_, value string) bool { return value == inRuntime })
	}
	config.Data[name] = where
	write := func() error { return r.runtimeCache.Update(ctx, config) }
	if config.ResourceVersion == "" {
		write = func() error { return r.runtimeCache.Create(ctx, config) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("write ConfigMap %q: %w", client.ObjectKeyFromObject(config), err)
	}
	return nil
}

// recordPlacement records to which cluster the gardenlet belongs, as soon as it is known.
func (r *reconciler) recordPlacement(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet, seed *corev1beta1.Seed) error {
	config, err := r.placements(ctx)
	if err != nil {
		return err
	}
	recorded, kubeconfig := config.Data[object.Name], object.Spec.KubeconfigSecretRef != nil
	var (
		runtime  release.Runs
		declared string
	)
	if recorded == "" && !kubeconfig && seed != nil {
		if runtime, err = release.RunsIn(ctx, r.runtimeAPI); err != nil {
			return err
		}
		gardens := &operatorv1alpha1.GardenList{}
		if err := r.runtimeCache.List(ctx, gardens); err != nil {
			return fmt.Errorf("list Gardens: %w", err)
		}
		if len(gardens.Items) == 1 {
			declared = gardens.Items[0].Annotations[operatorv1alpha1.AnnotationRuntimeClusterGardenlet]
		}
	}
	return r.place(ctx, config, object.Name, placed(object.Name, recorded, declared, kubeconfig, seed != nil, runtime))
}

// placeInRuntime records that a gardenlet belongs to the runtime cluster, or returns an error if it must not be deployed there.
func (r *reconciler) placeInRuntime(ctx context.Context, name string, garden *operatorv1alpha1.Garden) error {
	config, err := r.placements(ctx)
	if err != nil {
		return err
	}
	runtime, err := release.RunsIn(ctx, r.runtimeAPI)
	if err != nil {
		return err
	}
	if err := mayPlace(name, garden.Annotations[operatorv1alpha1.AnnotationRuntimeClusterGardenlet], config.Data, runtime); err != nil {
		return err
	}
	return r.place(ctx, config, name, inRuntime)
}
