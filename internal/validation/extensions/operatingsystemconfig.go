package extensions

import (
	"net/url"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateOperatingSystemConfig checks a new OperatingSystemConfig.
func ValidateOperatingSystemConfig(config *extensionsv1alpha1.OperatingSystemConfig) field.ErrorList {
	spec := &config.Spec
	errs := validate(&config.ObjectMeta, true, &spec.DefaultSpec)
	errs = append(errs, supported(spec.Purpose, specPath.Child("purpose"),
		extensionsv1alpha1.OperatingSystemConfigPurposeProvision, extensionsv1alpha1.OperatingSystemConfigPurposeReconcile)...)
	if spec.CRIConfig != nil {
		errs = append(errs, criConfig(spec.CRIConfig, specPath.Child("criConfig"))...)
	}
	paths := sets.New[string]()
	for _, file := range spec.Files {
		paths.Insert(file.Path)
	}
	errs = append(errs, units(spec.Units, paths, specPath.Child("units"))...)
	errs = append(errs, files(spec.Files, specPath.Child("files"))...)
	if spec.InPlaceUpdates != nil {
		path := specPath.Child("inPlaceUpdates")
		errs = append(errs, required(spec.InPlaceUpdates.OperatingSystemVersion, path.Child("operatingSystemVersion"))...)
		errs = append(errs, required(spec.InPlaceUpdates.Kubelet, path.Child("kubelet"))...)
	}
	return errs
}

// ValidateOperatingSystemConfigUpdate checks a changed OperatingSystemConfig.
func ValidateOperatingSystemConfigUpdate(config, old *extensionsv1alpha1.OperatingSystemConfig) field.ErrorList {
	if errs, done := frozen(&config.ObjectMeta, config.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&config.ObjectMeta, &old.ObjectMeta, &config.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	errs = append(errs, immutable(config.Spec.Purpose, old.Spec.Purpose, specPath.Child("purpose"))...)
	if config.Spec.CRIConfig != nil && old.Spec.CRIConfig != nil {
		errs = append(errs, immutable(config.Spec.CRIConfig.Name, old.Spec.CRIConfig.Name, specPath.Child("criConfig", "name"))...)
	}
	return append(errs, ValidateOperatingSystemConfig(config)...)
}

// ValidateOperatingSystemConfigStatus checks what an extension wrote in the status. Its units may refer to files of the spec.
func ValidateOperatingSystemConfigStatus(config *extensionsv1alpha1.OperatingSystemConfig) field.ErrorList {
	status, path := &config.Status, field.NewPath("status")
	paths := sets.New[string]()
	for _, file := range append(append([]extensionsv1alpha1.File{}, config.Spec.Files...), status.ExtensionFiles...) {
		paths.Insert(file.Path)
	}
	errs := units(status.ExtensionUnits, paths, path.Child("extensionUnits"))
	errs = append(errs, files(status.ExtensionFiles, path.Child("extensionFiles"))...)
	if status.CloudConfig != nil {
		errs = append(errs, secretReference(status.CloudConfig.SecretRef, path.Child("cloudConfig", "secretRef"))...)
	}
	if status.InPlaceUpdates != nil && status.InPlaceUpdates.OSUpdate != nil {
		errs = append(errs, required(status.InPlaceUpdates.OSUpdate.Command, path.Child("inPlaceUpdates", "osUpdate", "command"))...)
	}
	return errs
}

func units(list []extensionsv1alpha1.Unit, paths sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, unit := range list {
		path := path.Index(i)
		errs = append(errs, required(unit.Name, path.Child("name"))...)
		if seen.Has(unit.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), unit.Name))
		}
		seen.Insert(unit.Name)
		if unit.Command != nil {
			errs = append(errs, supported(*unit.Command, path.Child("command"),
				extensionsv1alpha1.CommandStart, extensionsv1alpha1.CommandRestart, extensionsv1alpha1.CommandStop)...)
		}
		dropIns := sets.New[string]()
		for j, dropIn := range unit.DropIns {
			path := path.Child("dropIns").Index(j)
			errs = append(errs, required(dropIn.Name, path.Child("name"))...)
			errs = append(errs, required(dropIn.Content, path.Child("content"))...)
			if dropIns.Has(dropIn.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), dropIn.Name))
			}
			dropIns.Insert(dropIn.Name)
		}
		for j, file := range unit.FilePaths {
			if !paths.Has(file) {
				errs = append(errs, field.NotFound(path.Child("filePaths").Index(j), file))
			}
		}
	}
	return errs
}

func files(list []extensionsv1alpha1.File, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	// A path may be used once for every node, and once for all others.
	seen := sets.New[string]()
	for i, file := range list {
		path := path.Index(i)
		errs = append(errs, absolutePath(file.Path, path.Child("path"))...)
		id := file.Path
		if file.HostName != nil {
			errs = append(errs, required(*file.HostName, path.Child("hostName"))...)
			id += " on " + *file.HostName
		}
		if seen.Has(id) {
			errs = append(errs, field.Duplicate(path.Child("path"), file.Path))
		}
		seen.Insert(id)
		if file.Permissions != nil && *file.Permissions > 0o7777 {
			errs = append(errs, field.Invalid(path.Child("permissions"), *file.Permissions, "must be at most 4095, which is 07777"))
		}
		errs = append(errs, fileContent(file.Content, path.Child("content"))...)
	}
	return errs
}

func fileContent(content extensionsv1alpha1.FileContent, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var sources int
	if ref := content.SecretRef; ref != nil {
		sources++
		errs = append(errs, required(ref.Name, path.Child("secretRef", "name"))...)
		errs = append(errs, required(ref.DataKey, path.Child("secretRef", "dataKey"))...)
	}
	if inline := content.Inline; inline != nil {
		sources++
		// Plain text has the empty encoding, which is not in the message: it would look as if something was missing.
		if codec := extensionsv1alpha1.FileCodecID(inline.Encoding); codec != extensionsv1alpha1.PlainFileCodecID {
			errs = append(errs, supported(codec, path.Child("inline", "encoding"), extensionsv1alpha1.B64FileCodecID)...)
		}
		errs = append(errs, required(inline.Data, path.Child("inline", "data"))...)
	}
	if ref := content.ImageRef; ref != nil {
		sources++
		errs = append(errs, required(ref.Image, path.Child("imageRef", "image"))...)
		errs = append(errs, absolutePath(ref.FilePathInImage, path.Child("imageRef", "filePathInImage"))...)
	}
	if sources != 1 {
		errs = append(errs, field.Required(path, "exactly one of secretRef, inline and imageRef must be set"))
	}
	return errs
}

func criConfig(config *extensionsv1alpha1.CRIConfig, path *field.Path) field.ErrorList {
	errs := supported(config.Name, path.Child("name"), extensionsv1alpha1.CRINameContainerD)
	if config.CgroupDriver != nil {
		errs = append(errs, supported(*config.CgroupDriver, path.Child("cgroupDriver"), extensionsv1alpha1.CgroupDriverCgroupfs, extensionsv1alpha1.CgroupDriverSystemd)...)
	}
	if config.Containerd == nil {
		return errs
	}
	path = path.Child("containerd")
	errs = append(errs, required(config.Containerd.SandboxImage, path.Child("sandboxImage"))...)

	upstreams := sets.New[string]()
	for i, registry := range config.Containerd.Registries {
		path := path.Child("registries").Index(i)
		errs = append(errs, required(registry.Upstream, path.Child("upstream"))...)
		if upstreams.Has(registry.Upstream) {
			errs = append(errs, field.Duplicate(path.Child("upstream"), registry.Upstream))
		}
		upstreams.Insert(registry.Upstream)
		if registry.Server != nil {
			errs = append(errs, httpURL(*registry.Server, path.Child("server"))...)
		}
		hosts := sets.New[string]()
		for j, host := range registry.Hosts {
			path := path.Child("hosts").Index(j)
			errs = append(errs, httpURL(host.URL, path.Child("url"))...)
			if hosts.Has(host.URL) {
				errs = append(errs, field.Duplicate(path.Child("url"), host.URL))
			}
			hosts.Insert(host.URL)
			for k, capability := range host.Capabilities {
				errs = append(errs, supported(capability, path.Child("capabilities").Index(k),
					extensionsv1alpha1.PullCapability, extensionsv1alpha1.ResolveCapability, extensionsv1alpha1.PushCapability)...)
			}
			for k, file := range host.CACerts {
				errs = append(errs, absolutePath(file, path.Child("caCerts").Index(k))...)
			}
		}
	}
	for i, plugin := range config.Containerd.Plugins {
		path := path.Child("plugins").Index(i)
		if plugin.Op != nil {
			errs = append(errs, supported(*plugin.Op, path.Child("op"), extensionsv1alpha1.AddPluginPathOperation, extensionsv1alpha1.RemovePluginPathOperation)...)
		}
		if len(plugin.Path) == 0 {
			errs = append(errs, field.Required(path.Child("path"), "must be set"))
		}
		for j, segment := range plugin.Path {
			errs = append(errs, required(segment, path.Child("path").Index(j))...)
		}
		if plugin.Op != nil && *plugin.Op == extensionsv1alpha1.RemovePluginPathOperation && plugin.Values != nil {
			errs = append(errs, field.Forbidden(path.Child("values"), "must not be set to remove what is at the path"))
		}
	}
	return errs
}

func httpURL(value string, path *field.Path) field.ErrorList {
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return field.ErrorList{field.Invalid(path, value, "must be a URL with scheme http or https")}
	}
	return nil
}
