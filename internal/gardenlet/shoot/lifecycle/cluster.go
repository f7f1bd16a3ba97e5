package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/controlplanenamespace"
)

const zonesAnnotation = resourcesv1alpha1.HighAvailabilityConfigZones

// genericKubeconfigAnnotation names, on the Cluster resource, the Secret with the kubeconfig that components share. Extensions look for it.
const genericKubeconfigAnnotation = constants.AnnotationGenericTokenKubeconfigSecretName

// syncCluster writes the Cluster resource, from which extensions know the shoot.
func (r *reconciler) syncCluster(ctx context.Context, w *world, shoot *corev1beta1.Shoot) error {
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	var profile *runtime.RawExtension
	var err error
	if w.cloudProfile != nil { // else what is known of it stays
		if profile, err = raw(w.cloudProfile, "CloudProfile"); err != nil {
			return err
		}
	}
	seed, err := raw(w.seed, "Seed")
	if err != nil {
		return err
	}
	wanted, err := raw(r.forExtensions(shoot), "Shoot")
	if err != nil {
		return err
	}
	_, err = controllerutil.CreateOrPatch(ctx, r.SeedClient, cluster, func() error {
		cluster.Spec.Seed, cluster.Spec.Shoot = seed, *wanted
		if profile != nil {
			cluster.Spec.CloudProfile = *profile
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write Cluster %q: %w", cluster.Name, err)
	}
	return nil
}

// forExtensions is a shoot as extensions hear of it. What its owner may not ask for is left out: extensions would leave the shoot alone, and
// the flow would wait for them.
func (r *reconciler) forExtensions(shoot *corev1beta1.Shoot) *corev1beta1.Shoot {
	if mayOverwrite(facts{shoot: shoot, config: r.Config}) {
		return shoot
	}
	shoot = shoot.DeepCopy()
	delete(shoot.Annotations, constants.ShootIgnore)
	return shoot
}

// raw writes an object as others read it: with its kind, and without what only the API server needs.
func raw(obj runtime.Object, kind string) (*runtime.RawExtension, error) {
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind(kind))
	if m, ok := obj.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", kind, err)
	}
	return &runtime.RawExtension{Raw: data}, nil
}

func tolerance(shoot *corev1beta1.Shoot) corev1beta1.FailureToleranceType {
	return controlplanenamespace.FailureTolerance(shoot)
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}
