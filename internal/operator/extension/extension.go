// Package extension has what the controllers for Extensions of operator.gardener.cloud have in common: names of objects, which parts an
// Extension has, what it refers to, and its conditions.
package extension

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// RuntimeManagedResource is the name of the ManagedResource of the extension in the runtime cluster.
func RuntimeManagedResource(name string) string { return "extension-" + name + "-garden" }

// AdmissionVirtualManagedResource is the name of the ManagedResource of the admission controller's objects in the virtual garden.
func AdmissionVirtualManagedResource(name string) string {
	return "extension-admission-virtual-" + name
}

// AdmissionRuntimeManagedResource is the name of the ManagedResource of the admission controller in the runtime cluster.
func AdmissionRuntimeManagedResource(name string) string {
	return "extension-admission-runtime-" + name
}

// RegistrationManagedResource is the name of the ManagedResource of the ControllerRegistration and ControllerDeployment.
func RegistrationManagedResource(name string) string { return "extension-registration-" + name }

// RuntimeNamespace is the namespace of the extension in the runtime cluster.
func RuntimeNamespace(name string) string {
	return operatorv1alpha1.ExtensionRuntimeNamespacePrefix + name
}

// VirtualNamespace is the namespace of the admission controller's objects in the virtual garden.
func VirtualNamespace(name string) string { return "extension-" + name }

// AdmissionServiceAccount is the name of the ServiceAccount of the admission controller, in namespace kube-system of the virtual garden.
func AdmissionServiceAccount(name string) string { return "extension-admission-" + name }

// Chart returns the chart of the extension controllers, or nil.
func Chart(e *operatorv1alpha1.Extension) *gardencorev1.OCIRepository {
	if e.Spec.Deployment == nil || e.Spec.Deployment.Extension == nil {
		return nil
	}
	return repository(&e.Spec.Deployment.Extension.DeploymentSpec)
}

// AdmissionVirtualChart returns the chart of the admission controller's objects in the virtual garden, or nil.
func AdmissionVirtualChart(e *operatorv1alpha1.Extension) *gardencorev1.OCIRepository {
	if e.Spec.Deployment == nil || e.Spec.Deployment.Admission == nil {
		return nil
	}
	return repository(e.Spec.Deployment.Admission.VirtualCluster)
}

// AdmissionRuntimeChart returns the chart of the admission controller in the runtime cluster, or nil.
func AdmissionRuntimeChart(e *operatorv1alpha1.Extension) *gardencorev1.OCIRepository {
	if e.Spec.Deployment == nil || e.Spec.Deployment.Admission == nil {
		return nil
	}
	return repository(e.Spec.Deployment.Admission.RuntimeCluster)
}

func repository(spec *operatorv1alpha1.DeploymentSpec) *gardencorev1.OCIRepository {
	if spec == nil || spec.Helm == nil {
		return nil
	}
	return spec.Helm.OCIRepository
}

// RegisteredResources returns the resources of the ControllerRegistration: those of an Extension without what is only about the garden
// itself. Those of kind Extension that are compatible with the garden alone are left out: without a compatibility, they would be for shoots.
func RegisteredResources(e *operatorv1alpha1.Extension) []corev1beta1.ControllerResource {
	var resources []corev1beta1.ControllerResource
	garden := func(cluster corev1beta1.ClusterType) bool { return cluster == corev1beta1.ClusterTypeGarden }
	for i := range e.Spec.Resources {
		resource := *e.Spec.Resources[i].DeepCopy()
		compatible := len(resource.ClusterCompatibility)
		resource.ClusterCompatibility = slices.DeleteFunc(resource.ClusterCompatibility, garden)
		if compatible > 0 && len(resource.ClusterCompatibility) == 0 {
			continue
		}
		resource.AutoEnable = slices.DeleteFunc(resource.AutoEnable, garden)
		resources = append(resources, resource)
	}
	return resources
}

// Registered reports whether an Extension is registered in the virtual garden: if it has a chart, or resources for which it is responsible there.
func Registered(e *operatorv1alpha1.Extension) bool {
	return Chart(e) != nil || len(RegisteredResources(e)) > 0
}

// Reference names a Secret or ConfigMap of namespace garden in the runtime cluster.
type Reference struct {
	Kind, Name string
}

// References returns what an Extension refers to: Secrets for its charts, and what values are taken from. They are sorted, and each is listed once.
func References(e *operatorv1alpha1.Extension) []Reference {
	var refs []Reference
	secret := func(ref *corev1.LocalObjectReference) {
		if ref != nil && ref.Name != "" {
			refs = append(refs, Reference{"Secret", ref.Name})
		}
	}
	for _, chart := range []*gardencorev1.OCIRepository{Chart(e), AdmissionVirtualChart(e), AdmissionRuntimeChart(e)} {
		if chart != nil {
			secret(chart.PullSecretRef)
			secret(chart.CABundleSecretRef)
		}
	}
	for _, resource := range Resources(e) {
		if ref := resource.ResourceRef; ref.Name != "" && (ref.Kind == "Secret" || ref.Kind == "ConfigMap") {
			refs = append(refs, Reference{ref.Kind, ref.Name})
		}
	}
	slices.SortFunc(refs, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(refs)
}

// Resources returns what values of an Extension are taken from.
func Resources(e *operatorv1alpha1.Extension) []gardencorev1.NamedResourceReference {
	if e.Spec.Deployment == nil {
		return nil
	}
	return e.Spec.Deployment.Resources
}

// InUse reports whether an Extension still needs what it refers to: until its objects are deleted.
func InUse(e *operatorv1alpha1.Extension) bool {
	return e.DeletionTimestamp == nil || controllerutil.ContainsFinalizer(e, operatorv1alpha1.FinalizerName)
}

// Garden returns the Garden, or nil if there is none. There is at most one.
func Garden(ctx context.Context, runtimeCache client.Reader) (*operatorv1alpha1.Garden, error) {
	gardens := &operatorv1alpha1.GardenList{}
	if err := runtimeCache.List(ctx, gardens, client.Limit(1)); err != nil {
		return nil, fmt.Errorf("list Gardens: %w", err)
	}
	if len(gardens.Items) == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	return &gardens.Items[0], nil
}

// ManagedResourceDefinition is the name of the CustomResourceDefinition of ManagedResources, which the Garden brings.
const ManagedResourceDefinition = "managedresources.resources.gardener.cloud"

// Requests returns a request for the Extension that an object was created for.
func Requests(obj client.Object) []reconcile.Request {
	if name := obj.GetLabels()[operatorv1alpha1.LabelExtensionName]; name != "" {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
	}
	return nil
}
