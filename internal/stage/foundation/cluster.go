package foundation

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ClusterValues are the content of a Cluster resource, from which extensions know the shoot.
type ClusterValues struct {
	// Name is that of the namespace of the control plane.
	Name string
	// CloudProfile may be nil: the resource keeps the one that it has.
	CloudProfile *corev1beta1.CloudProfile
	Seed         *corev1beta1.Seed
	Shoot        *corev1beta1.Shoot
}

// WriteCluster writes a Cluster resource.
func WriteCluster(ctx context.Context, seedAPI client.Client, v ClusterValues) error {
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: v.Name}}
	var profile *runtime.RawExtension
	var err error
	if v.CloudProfile != nil {
		if profile, err = raw(v.CloudProfile, "CloudProfile"); err != nil {
			return err
		}
	}
	seed, err := raw(v.Seed, "Seed")
	if err != nil {
		return err
	}
	shoot, err := raw(v.Shoot, "Shoot")
	if err != nil {
		return err
	}
	_, err = controllerutil.CreateOrPatch(ctx, seedAPI, cluster, func() error {
		cluster.Spec.Seed, cluster.Spec.Shoot = seed, *shoot
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

// raw encodes an object as others read it: with its kind, and without what only the API server needs.
func raw(obj runtime.Object, kind string) (*runtime.RawExtension, error) {
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind(kind))
	if m, ok := obj.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return &runtime.RawExtension{Raw: data}, nil
}
