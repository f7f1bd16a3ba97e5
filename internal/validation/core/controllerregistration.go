package core

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

const (
	kindExtension               = "Extension"
	kindSelfHostedShootExposure = "SelfHostedShootExposure"
)

// extensionKinds are the kinds of extension resources that a controller can serve.
var extensionKinds = []string{
	"BackupBucket", "BackupEntry", "Bastion", "ContainerRuntime", "ControlPlane", "DNSRecord", kindExtension,
	"Infrastructure", "Network", "OperatingSystemConfig", kindSelfHostedShootExposure, "Worker",
}

// ValidateControllerRegistration checks a new ControllerRegistration.
func ValidateControllerRegistration(registration *corev1beta1.ControllerRegistration) field.ErrorList {
	errs := validateLabelName(&registration.ObjectMeta, false)
	path := field.NewPath("spec")
	errs = append(errs, ControllerResources(registration.Spec.Resources, []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot, corev1beta1.ClusterTypeSeed}, path.Child("resources"))...)
	if deployment := registration.Spec.Deployment; deployment != nil {
		path := path.Child("deployment")
		if deployment.Policy != nil {
			errs = append(errs, supported(*deployment.Policy, []corev1beta1.ControllerDeploymentPolicy{
				corev1beta1.ControllerDeploymentPolicyOnDemand, corev1beta1.ControllerDeploymentPolicyAlways, corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots,
			}, path.Child("policy"))...)
		}
		if deployment.SeedSelector != nil {
			if slices.ContainsFunc(registration.Spec.Resources, isPrimary) {
				errs = append(errs, field.Forbidden(path.Child("seedSelector"), "is not possible with a primary resource, which every seed may need"))
			}
			errs = append(errs, labelSelector(deployment.SeedSelector, path.Child("seedSelector"))...)
		}
		if len(deployment.DeploymentRefs) > 1 {
			errs = append(errs, field.Forbidden(path.Child("deploymentRefs"), "at most one is possible"))
		}
		for i, ref := range deployment.DeploymentRefs {
			if ref.Name == "" {
				errs = append(errs, field.Required(path.Child("deploymentRefs").Index(i).Child("name"), "must be set"))
			}
		}
	}
	return errs
}

// ValidateControllerRegistrationUpdate checks a changed ControllerRegistration.
func ValidateControllerRegistrationUpdate(registration, old *corev1beta1.ControllerRegistration) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&registration.ObjectMeta, &old.ObjectMeta, metadataPath)
	for i, resource := range registration.Spec.Resources {
		for _, before := range old.Spec.Resources {
			if resource.Kind == before.Kind && resource.Type == before.Type && isPrimary(resource) != isPrimary(before) {
				errs = append(errs, field.Invalid(field.NewPath("spec", "resources").Index(i).Child("primary"), resource.Primary, "cannot be changed"))
			}
		}
	}
	return append(errs, ValidateControllerRegistration(registration)...)
}

func isPrimary(resource corev1beta1.ControllerResource) bool {
	return resource.Primary == nil || *resource.Primary
}

// ControllerResources checks what an extension controller serves, for the given types of cluster.
func ControllerResources(resources []corev1beta1.ControllerResource, clusters []corev1beta1.ClusterType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[[2]string]()
	for i, resource := range resources {
		path := path.Index(i)
		if resource.Kind == "" {
			errs = append(errs, field.Required(path.Child("kind"), "must be set"))
		}
		errs = append(errs, supported(resource.Kind, extensionKinds, path.Child("kind"))...)
		if resource.Type == "" {
			errs = append(errs, field.Required(path.Child("type"), "must be set"))
		}
		if id := [2]string{resource.Kind, resource.Type}; seen.Has(id) {
			errs = append(errs, field.Duplicate(path, resource.Kind+"/"+resource.Type))
		} else {
			seen.Insert(id)
		}
		if resource.ContinuousEndpointUpdate != nil && resource.Kind != kindSelfHostedShootExposure {
			errs = append(errs, field.Forbidden(path.Child("continuousEndpointUpdate"), "is for kind SelfHostedShootExposure only"))
		}
		if resource.Kind == kindExtension {
			errs = append(errs, extensionResource(resource, clusters, path)...)
			continue
		}
		const only = "is for kind Extension only"
		if len(resource.AutoEnable) > 0 {
			errs = append(errs, field.Forbidden(path.Child("autoEnable"), only))
		}
		if len(resource.ClusterCompatibility) > 0 {
			errs = append(errs, field.Forbidden(path.Child("clusterCompatibility"), only))
		}
		if resource.ReconcileTimeout != nil {
			errs = append(errs, field.Forbidden(path.Child("reconcileTimeout"), only))
		}
		if resource.Lifecycle != nil {
			errs = append(errs, field.Forbidden(path.Child("lifecycle"), only))
		}
	}
	return errs
}

func extensionResource(resource corev1beta1.ControllerResource, clusters []corev1beta1.ClusterType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, cluster := range resource.ClusterCompatibility {
		path := path.Child("clusterCompatibility").Index(i)
		if slices.Contains(resource.ClusterCompatibility[:i], cluster) {
			errs = append(errs, field.Duplicate(path, cluster))
		}
		errs = append(errs, supported(cluster, clusters, path)...)
	}
	for i, cluster := range resource.AutoEnable {
		path := path.Child("autoEnable").Index(i)
		if slices.Contains(resource.AutoEnable[:i], cluster) {
			errs = append(errs, field.Duplicate(path, cluster))
		}
		errs = append(errs, supported(cluster, clusters, path)...)
		if !slices.Contains(resource.ClusterCompatibility, cluster) {
			errs = append(errs, field.Forbidden(path, "must be among clusterCompatibility"))
		}
	}
	if lifecycle := resource.Lifecycle; lifecycle != nil {
		path := path.Child("lifecycle")
		before, after, worker := corev1beta1.BeforeKubeAPIServer, corev1beta1.AfterKubeAPIServer, corev1beta1.AfterWorker
		for _, phase := range []struct {
			name   string
			value  *corev1beta1.ControllerResourceLifecycleStrategy
			values []corev1beta1.ControllerResourceLifecycleStrategy
		}{
			{"reconcile", lifecycle.Reconcile, []corev1beta1.ControllerResourceLifecycleStrategy{before, after, worker}},
			{"delete", lifecycle.Delete, []corev1beta1.ControllerResourceLifecycleStrategy{before, after}},
			{"migrate", lifecycle.Migrate, []corev1beta1.ControllerResourceLifecycleStrategy{before, after}},
		} {
			if phase.value != nil {
				errs = append(errs, supported(*phase.value, phase.values, path.Child(phase.name))...)
			}
		}
	}
	return errs
}
