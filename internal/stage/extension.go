package stage

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
)

// ExtensionValues are what resources of extensions are written with. They are reconciled even if nothing has changed.
func (r *Run) ExtensionValues() extensionobject.Values {
	return extensionobject.Values{Client: r.SeedAPI, Clock: r.Clock, Always: true, Restore: r.Restore, Controller: r.Controller}
}

// WriteExtension writes a resource of an extension as mutate makes it, and requests its reconciliation. Webhooks of other extensions may change it.
func WriteExtension[T extensionsv1alpha1.Object](ctx context.Context, r *Run, obj T, mutate func(T)) error {
	return r.Advise(ctx, extensionobject.Apply(ctx, r.ExtensionValues(), obj, mutate))
}

// Extend writes a resource of an extension as mutate makes it, and waits until its extension has reconciled it if the run waits for readiness.
func Extend[T extensionsv1alpha1.Object](ctx context.Context, r *Run, obj T, mutate func(T)) error {
	if r.SkipReadiness {
		return WriteExtension(ctx, r, obj, mutate)
	}
	return ExtendAndAwait(ctx, r, obj, mutate)
}

// ExtendAndAwait writes a resource of an extension as mutate makes it, and waits until its extension has reconciled it. It is for resources
// whose status other tasks need.
func ExtendAndAwait[T extensionsv1alpha1.Object](ctx context.Context, r *Run, obj T, mutate func(T)) error {
	if err := WriteExtension(ctx, r, obj, mutate); err != nil {
		return err
	}
	return extensionobject.Await(ctx, r.ExtensionValues(), obj)
}

// DeleteExtension deletes a resource of an extension, and waits until it is gone.
func (r *Run) DeleteExtension(ctx context.Context, obj extensionsv1alpha1.Object) error {
	if err := extensionobject.Delete(ctx, r.ExtensionValues(), obj); err != nil {
		return err
	}
	return extensionobject.AwaitGone(ctx, r.ExtensionValues(), obj)
}

// DefaultSpec is the part of a spec that all extension resources have. The class is kept as it is.
func DefaultSpec(class *extensionsv1alpha1.ExtensionClass, typ string, config *runtime.RawExtension) extensionsv1alpha1.DefaultSpec {
	return extensionsv1alpha1.DefaultSpec{Type: typ, Class: class, ProviderConfig: config}
}

func (r *Run) meta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name + suffix}
}

// Infrastructure returns the Infrastructure of the cluster, with its name only.
func (r *Run) Infrastructure() *extensionsv1alpha1.Infrastructure {
	return &extensionsv1alpha1.Infrastructure{ObjectMeta: r.meta("")}
}

// ControlPlane returns the ControlPlane of the cluster, with its name only.
func (r *Run) ControlPlane() *extensionsv1alpha1.ControlPlane {
	return &extensionsv1alpha1.ControlPlane{ObjectMeta: r.meta("")}
}

// Network returns the Network of the cluster, with its name only.
func (r *Run) Network() *extensionsv1alpha1.Network {
	return &extensionsv1alpha1.Network{ObjectMeta: r.meta("")}
}

// Worker returns the Worker of the cluster, with its name only.
func (r *Run) Worker() *extensionsv1alpha1.Worker {
	return &extensionsv1alpha1.Worker{ObjectMeta: r.meta("")}
}

// DNSRecord returns a DNSRecord of the cluster, with its name only: the internal or the external one.
func (r *Run) DNSRecord(name string) *extensionsv1alpha1.DNSRecord {
	return &extensionsv1alpha1.DNSRecord{ObjectMeta: r.meta("-" + name)}
}

// CloudProvider refers to the Secret with the credentials of the infrastructure.
func (r *Run) CloudProvider() corev1.SecretReference {
	return corev1.SecretReference{Namespace: r.Namespace, Name: constants.SecretNameCloudProvider}
}
