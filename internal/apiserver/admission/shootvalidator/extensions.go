package shootvalidator

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// rawExtensions refuses configurations for extensions in internal versions: their meaning may change any time.
func rawExtensions(spec *corev1beta1.ShootSpec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	check := func(config *runtime.RawExtension, path *field.Path) {
		if config == nil || config.Raw == nil {
			return
		}
		var meta metav1.TypeMeta
		if err := json.Unmarshal(config.Raw, &meta); err != nil {
			return // extensions refuse what they cannot decode
		}
		if gv, err := schema.ParseGroupVersion(meta.APIVersion); err == nil && gv.Version == runtime.APIVersionInternal {
			errs = append(errs, field.Invalid(path, meta.APIVersion, "must not be of an internal version"))
		}
	}
	check(spec.Provider.ControlPlaneConfig, path.Child("provider", "controlPlaneConfig"))
	check(spec.Provider.InfrastructureConfig, path.Child("provider", "infrastructureConfig"))
	if spec.Networking != nil {
		check(spec.Networking.ProviderConfig, path.Child("networking", "providerConfig"))
	}
	for i := range spec.Extensions {
		check(spec.Extensions[i].ProviderConfig, path.Child("extensions").Index(i).Child("providerConfig"))
	}
	for i := range spec.Provider.Workers {
		worker, path := &spec.Provider.Workers[i], path.Child("provider", "workers").Index(i)
		check(worker.ProviderConfig, path.Child("providerConfig"))
		if worker.Machine.Image != nil {
			check(worker.Machine.Image.ProviderConfig, path.Child("machine", "image", "providerConfig"))
		}
		if worker.CRI == nil {
			continue
		}
		for j := range worker.CRI.ContainerRuntimes {
			check(worker.CRI.ContainerRuntimes[j].ProviderConfig, path.Child("cri", "containerRuntimes").Index(j).Child("providerConfig"))
		}
	}
	return errs
}
