package core

import (
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/apiserverconfig"
	"gardener.cloud/gardener/internal/validation/ordered"
)

// versionSpan is the range of minor versions of Kubernetes 1 that have something. It is open at the oldest and at the newest version of
// the tables.
type versionSpan struct{ since, last int }

// has reports whether a version is in the range.
func (s versionSpan) has(version kubeVersion) bool {
	if version.Version == nil {
		return true
	}
	minor := int(version.Minor())
	return (s.since <= minor || s.since <= oldestKnownMinor && minor < oldestKnownMinor) && (minor <= s.last || s.last == newestKnownMinor)
}

// featureGate is the lifecycle of a feature gate. From lockedSince on it has a fixed value.
type featureGate struct {
	since, last, lockedSince int
	locked                   bool
}

// groupGates turn all features of a stage on or off.
var groupGates = []string{"AllAlpha", "AllBeta"}

// featureGates checks the feature gates of Kubernetes components. Components ignore each other's gates.
func featureGates(gates map[string]bool, version kubeVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range ordered.Map(gates) {
		if slices.Contains(groupGates, name) {
			continue
		}
		gate, ok := knownFeatureGates[name]
		switch {
		case !ok:
			errs = append(errs, field.Invalid(path.Child(name), value, "is not a feature gate of Kubernetes"))
		case !versionSpan{gate.since, gate.last}.has(version):
			errs = append(errs, field.Forbidden(path.Child(name), "is not a feature gate of this version"))
		case gate.lockedSince > 0 && version.atLeast(1, uint64(gate.lockedSince)) && value != gate.locked:
			errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf("is always %v in this version", gate.locked)))
		}
	}
	return errs
}

// FeatureGatePossible reports whether components of a Kubernetes version accept a feature gate with a value.
func FeatureGatePossible(name string, value bool, version string) bool {
	return len(featureGates(map[string]bool{name: value}, parseVersion(version), field.NewPath("featureGates"))) == 0
}

// requiredAPIVersions are used by Gardener's own components in every cluster.
var requiredAPIVersions = []string{
	"v1", "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1", "apps/v1",
	"authentication.k8s.io/v1", "authorization.k8s.io/v1", "certificates.k8s.io/v1", "coordination.k8s.io/v1",
	"networking.k8s.io/v1", "policy/v1", "rbac.authorization.k8s.io/v1", "storage.k8s.io/v1",
}

// workerAPIVersions are used by them in clusters with workers.
var workerAPIVersions = []string{"autoscaling/v2", "batch/v1", "discovery.k8s.io/v1", "node.k8s.io/v1", "scheduling.k8s.io/v1"}

// optionalWithoutWorkers are needed only by kubelets.
var optionalWithoutWorkers = []string{"certificates.k8s.io/v1", "apps/v1", "policy/v1", "storage.k8s.io/v1"}

// runtimeConfig checks which API groups and versions are turned on or off.
func runtimeConfig(config map[string]bool, version kubeVersion, workerless bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, enabled := range ordered.Map(config) {
		path := path.Key(name)
		known, ok := knownAPIVersions[name]
		required := slices.Contains(requiredAPIVersions, name) || slices.Contains(workerAPIVersions, name)
		if workerless && (slices.Contains(workerAPIVersions, name) || slices.Contains(optionalWithoutWorkers, name)) {
			required = false
		}
		switch {
		case !ok:
			errs = append(errs, field.Invalid(path, name, "is not an API group and version of Kubernetes"))
		case !known.has(version):
			errs = append(errs, field.Forbidden(path, "is not an API version of this Kubernetes version"))
		case required && !enabled:
			errs = append(errs, field.Forbidden(path, "cannot be turned off, as the cluster needs it"))
		}
	}
	return errs
}

// requiredPlugins cannot be turned off, as clusters are not safe without them.
var requiredPlugins = []string{
	"DefaultStorageClass", "DefaultTolerationSeconds", "MutatingAdmissionWebhook", "NamespaceLifecycle", "NodeRestriction",
	"PodSecurity", "Priority", "ResourceQuota", "ServiceAccount", "StorageObjectInUseProtection", "ValidatingAdmissionWebhook",
}

// admissionPlugins checks which admission plugins are turned on or off.
func admissionPlugins(plugins []corev1beta1.AdmissionPlugin, version kubeVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, plugin := range plugins {
		path := path.Index(i)
		if plugin.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be set"))
			continue
		}
		if slices.ContainsFunc(plugins[:i], func(other corev1beta1.AdmissionPlugin) bool {
			return other.Name == plugin.Name && !apiequality.Semantic.DeepEqual(other, plugin) // on and off, say: no API server would start
		}) {
			errs = append(errs, field.Duplicate(path.Child("name"), plugin.Name))
		}
		known, ok := knownAdmissionPlugins[plugin.Name]
		if !ok {
			errs = append(errs, field.Invalid(path.Child("name"), plugin.Name, "is not an admission plugin of Kubernetes"))
			continue
		}
		if !known.has(version) {
			errs = append(errs, field.Forbidden(path.Child("name"), "is not an admission plugin of this version"))
			continue
		}
		if ptr.Deref(plugin.Disabled, false) && slices.Contains(requiredPlugins, plugin.Name) {
			errs = append(errs, field.Forbidden(path, "cannot be turned off, as the cluster needs it"))
		}
		if plugin.KubeconfigSecretName != nil && !slices.Contains(apiserverconfig.KubeconfigPlugins, plugin.Name) {
			errs = append(errs, field.Forbidden(path.Child("kubeconfigSecretName"), "is for plugins that call webhooks"))
		} else if plugin.Config != nil && !slices.Contains(apiserverconfig.ConfigurablePlugins, plugin.Name) {
			errs = append(errs, field.Forbidden(path.Child("config"), "this plugin has no configuration"))
		} else if !ptr.Deref(plugin.Disabled, false) {
			kubeconfig := ""
			if plugin.KubeconfigSecretName != nil {
				kubeconfig = "/kubeconfig" // the gardenlet says where it is
			}
			_, more := apiserverconfig.AdmissionPlugin(plugin, kubeconfig, path)
			errs = append(errs, more...)
		}
	}
	return errs
}
