package extension

import (
	"strings"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	stageextension "gardener.cloud/gardener/internal/stage/extension"
)

// KindExtension is the kind of the resources of extensions.gardener.cloud that add to the garden itself.
const KindExtension = "Extension"

// Wanted returns the Extensions of extensions.gardener.cloud that the garden has for itself: those in its spec, and those that are enabled for
// gardens. Only what is compatible with gardens counts. They are sorted by type. In the spec, upper and lower case are the same; the result has
// the type of the Extension that is responsible.
func Wanted(garden *operatorv1alpha1.Garden, extensions []operatorv1alpha1.Extension) []stageextension.Extension {
	specified := make([]corev1beta1.Extension, 0, len(garden.Spec.Extensions))
	registrations := Registrations(extensions)
	for _, e := range garden.Spec.Extensions {
		typ := e.Type
		for _, registration := range registrations {
			for _, resource := range registration.Spec.Resources {
				if resource.Kind == KindExtension && strings.EqualFold(resource.Type, e.Type) {
					typ = resource.Type
				}
			}
		}
		specified = append(specified, corev1beta1.Extension{Type: typ, ProviderConfig: e.ProviderConfig})
	}
	return stageextension.DesiredForGarden(specified, registrations)
}

// Registrations returns Extensions in the form of ControllerRegistrations, with what is about the garden itself, for functions that take these.
func Registrations(extensions []operatorv1alpha1.Extension) []corev1beta1.ControllerRegistration {
	registrations := make([]corev1beta1.ControllerRegistration, 0, len(extensions))
	for i := range extensions {
		registration := corev1beta1.ControllerRegistration{}
		registration.Name, registration.Spec.Resources = extensions[i].Name, extensions[i].Spec.Resources
		registrations = append(registrations, registration)
	}
	return registrations
}
