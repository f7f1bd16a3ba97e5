// Package seedmanagement validates the objects of seedmanagement.gardener.cloud.
package seedmanagement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/validation/core"
	gardenletvalidation "gardener.cloud/gardener/internal/validation/gardenlet"
	"gardener.cloud/gardener/internal/validation/ordered"
)

var metadataPath = field.NewPath("metadata")

// ValidateGardenlet checks a new Gardenlet.
func ValidateGardenlet(gardenlet *seedmanagementv1alpha1.Gardenlet) field.ErrorList {
	errs := metadata(&gardenlet.ObjectMeta, constants.GardenerOperationReconcile, constants.GardenerOperationRenewKubeconfig, constants.OperationForceRedeploy)
	for _, msg := range apivalidation.NameIsDNSLabel(gardenlet.Name, false) {
		if gardenlet.Name != "" && len(apivalidation.NameIsDNSSubdomain(gardenlet.Name, false)) == 0 {
			errs = append(errs, field.Invalid(metadataPath.Child("name"), gardenlet.Name, msg))
		}
	}
	path := field.NewPath("spec")
	deployment := path.Child("deployment")
	errs = append(errs, gardenletDeployment(&gardenlet.Spec.Deployment.GardenletDeployment, deployment)...)
	errs = append(errs, core.OCIRepository(&gardenlet.Spec.Deployment.Helm.OCIRepository, deployment.Child("helm", "ociRepository"))...)
	_, configErrs := gardenletConfig(gardenlet.Spec.Config, path.Child("config"), seedmanagementv1alpha1.BootstrapToken)
	return append(errs, configErrs...)
}

// ValidateGardenletUpdate checks a changed Gardenlet.
func ValidateGardenletUpdate(gardenlet, old *seedmanagementv1alpha1.Gardenlet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&gardenlet.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, seedConfigUpdate(gardenlet.Spec.Config, old.Spec.Config, field.NewPath("spec", "config"))...)
	return append(errs, ValidateGardenlet(gardenlet)...)
}

// ValidateGardenletStatusUpdate checks a changed status.
func ValidateGardenletStatusUpdate(gardenlet, old *seedmanagementv1alpha1.Gardenlet) field.ErrorList {
	errs := core.ValidateStatusMetadata(&gardenlet.ObjectMeta, &old.ObjectMeta)
	return append(errs, apivalidation.ValidateNonnegativeField(gardenlet.Status.ObservedGeneration, field.NewPath("status", "observedGeneration"))...)
}

// ValidateManagedSeed checks a new ManagedSeed.
func ValidateManagedSeed(managedSeed *seedmanagementv1alpha1.ManagedSeed) field.ErrorList {
	errs := metadata(&managedSeed.ObjectMeta, constants.GardenerOperationReconcile, constants.GardenerOperationRenewKubeconfig)
	errs = append(errs, gardenNamespace(managedSeed.Namespace)...)
	path := field.NewPath("spec")
	switch {
	case managedSeed.Spec.Shoot == nil:
		errs = append(errs, field.Required(path.Child("shoot"), "must be set"))
	case managedSeed.Spec.Shoot.Name == "":
		errs = append(errs, field.Required(path.Child("shoot", "name"), "must be set"))
	}
	_, gardenletErrs := managedGardenlet(&managedSeed.Spec.Gardenlet, path.Child("gardenlet"))
	return append(errs, gardenletErrs...)
}

// ValidateManagedSeedUpdate checks a changed ManagedSeed.
func ValidateManagedSeedUpdate(managedSeed, old *seedmanagementv1alpha1.ManagedSeed) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&managedSeed.ObjectMeta, &old.ObjectMeta, metadataPath)
	path := field.NewPath("spec")
	errs = append(errs, apivalidation.ValidateImmutableField(managedSeed.Spec.Shoot, old.Spec.Shoot, path.Child("shoot"))...)
	errs = append(errs, managedGardenletUpdate(&managedSeed.Spec.Gardenlet, &old.Spec.Gardenlet, path.Child("gardenlet"))...)
	return append(errs, ValidateManagedSeed(managedSeed)...)
}

// ValidateManagedSeedStatusUpdate checks a changed status.
func ValidateManagedSeedStatusUpdate(managedSeed, old *seedmanagementv1alpha1.ManagedSeed) field.ErrorList {
	errs := core.ValidateStatusMetadata(&managedSeed.ObjectMeta, &old.ObjectMeta)
	return append(errs, apivalidation.ValidateNonnegativeField(managedSeed.Status.ObservedGeneration, field.NewPath("status", "observedGeneration"))...)
}

// ValidateManagedSeedSet checks a new ManagedSeedSet.
func ValidateManagedSeedSet(set *seedmanagementv1alpha1.ManagedSeedSet, opts core.Options) field.ErrorList {
	errs := metadata(&set.ObjectMeta)
	errs = append(errs, gardenNamespace(set.Namespace)...)
	spec, path := &set.Spec, field.NewPath("spec")
	errs = append(errs, nonNegative(spec.Replicas, path.Child("replicas"))...)
	errs = append(errs, nonNegative(spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	errs = append(errs, updateStrategy(spec.UpdateStrategy, path.Child("updateStrategy"))...)

	selectorPath := path.Child("selector")
	errs = append(errs, metav1validation.ValidateLabelSelector(&spec.Selector, metav1validation.LabelSelectorValidationOptions{}, selectorPath)...)
	selector, err := metav1.LabelSelectorAsSelector(&spec.Selector)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(selectorPath, spec.Selector, err.Error()))
	case selector.Empty():
		errs = append(errs, field.Invalid(selectorPath, spec.Selector, "must select something"))
	}
	fits := func(given map[string]string, path *field.Path) {
		errs = append(errs, metav1validation.ValidateLabels(given, path)...)
		if err == nil && !selector.Empty() && !selector.Matches(labels.Set(given)) {
			errs = append(errs, field.Invalid(path, given, "must fit the selector"))
		}
	}

	template := path.Child("template")
	fits(spec.Template.Labels, template.Child("metadata", "labels"))
	if spec.Template.Spec.Shoot != nil {
		errs = append(errs, field.Forbidden(template.Child("spec", "shoot"), "is set for each replica"))
	}
	config, gardenletErrs := managedGardenlet(&spec.Template.Spec.Gardenlet, template.Child("spec", "gardenlet"))
	errs = append(errs, gardenletErrs...)
	if config != nil && config.SeedConfig != nil {
		fits(config.SeedConfig.Labels, template.Child("spec", "gardenlet", "config", "seedConfig", "metadata", "labels"))
	}
	shoot := path.Child("shootTemplate")
	fits(spec.ShootTemplate.Labels, shoot.Child("metadata", "labels"))
	return append(errs, core.ValidateShootTemplate(&spec.ShootTemplate, opts, shoot)...)
}

// ValidateManagedSeedSetUpdate checks a changed ManagedSeedSet.
func ValidateManagedSeedSetUpdate(set, old *seedmanagementv1alpha1.ManagedSeedSet, opts core.Options) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&set.ObjectMeta, &old.ObjectMeta, metadataPath)
	path := field.NewPath("spec")
	errs = append(errs, apivalidation.ValidateImmutableField(set.Spec.Selector, old.Spec.Selector, path.Child("selector"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(set.Spec.RevisionHistoryLimit, old.Spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	errs = append(errs, managedGardenletUpdate(&set.Spec.Template.Spec.Gardenlet, &old.Spec.Template.Spec.Gardenlet, path.Child("template", "spec", "gardenlet"))...)
	errs = append(errs, core.ValidateShootTemplateUpdate(&set.Spec.ShootTemplate, &old.Spec.ShootTemplate, path.Child("shootTemplate"))...)
	return append(errs, ValidateManagedSeedSet(set, opts)...)
}

// pendingReasons are the reasons why a replica can be pending.
var pendingReasons = []seedmanagementv1alpha1.PendingReplicaReason{
	seedmanagementv1alpha1.ShootReconcilingReason, seedmanagementv1alpha1.ShootDeletingReason, seedmanagementv1alpha1.ShootReconcileFailedReason,
	seedmanagementv1alpha1.ShootDeleteFailedReason, seedmanagementv1alpha1.ManagedSeedPreparingReason, seedmanagementv1alpha1.ManagedSeedDeletingReason,
	seedmanagementv1alpha1.SeedNotReadyReason, seedmanagementv1alpha1.ShootNotHealthyReason,
}

// ValidateManagedSeedSetStatusUpdate checks a changed status.
func ValidateManagedSeedSetStatusUpdate(set, old *seedmanagementv1alpha1.ManagedSeedSet) field.ErrorList {
	errs := core.ValidateStatusMetadata(&set.ObjectMeta, &old.ObjectMeta)
	status, path := &set.Status, field.NewPath("status")
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"replicas", int64(status.Replicas)},
		{"readyReplicas", int64(status.ReadyReplicas)},
		{"nextReplicaNumber", int64(status.NextReplicaNumber)},
		{"currentReplicas", int64(status.CurrentReplicas)},
		{"updatedReplicas", int64(status.UpdatedReplicas)},
		{"observedGeneration", status.ObservedGeneration},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(f.value, path.Child(f.name))...)
	}
	for name, value := range ordered.Map(map[string]int32{"readyReplicas": status.ReadyReplicas, "currentReplicas": status.CurrentReplicas, "updatedReplicas": status.UpdatedReplicas}) {
		if value > status.Replicas {
			errs = append(errs, field.Invalid(path.Child(name), value, "must not be above replicas"))
		}
	}
	if status.NextReplicaNumber < old.Status.NextReplicaNumber {
		errs = append(errs, field.Invalid(path.Child("nextReplicaNumber"), status.NextReplicaNumber, "cannot be decreased"))
	}
	errs = append(errs, nonNegative(status.CollisionCount, path.Child("collisionCount"))...)
	if before := old.Status.CollisionCount; before != nil && (status.CollisionCount == nil || *status.CollisionCount < *before) {
		errs = append(errs, field.Invalid(path.Child("collisionCount"), status.CollisionCount, "cannot be decreased"))
	}
	if pending := status.PendingReplica; pending != nil {
		path := path.Child("pendingReplica")
		number, ok := strings.CutPrefix(pending.Name, set.Name+"-")
		if _, err := strconv.ParseUint(number, 10, 31); !ok || err != nil {
			errs = append(errs, field.Invalid(path.Child("name"), pending.Name, "must be the name of the set, a hyphen and a number"))
		}
		if !slices.Contains(pendingReasons, pending.Reason) {
			errs = append(errs, field.NotSupported(path.Child("reason"), pending.Reason, pendingReasons))
		}
		errs = append(errs, nonNegative(pending.Retries, path.Child("retries"))...)
	}
	return errs
}

// metadata checks the metadata with the operation annotation.
func metadata(meta *metav1.ObjectMeta, operations ...string) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	if operation, ok := meta.Annotations[constants.GardenerOperation]; ok && operation != "" && len(operations) > 0 && !slices.Contains(operations, operation) {
		errs = append(errs, field.NotSupported(metadataPath.Child("annotations").Key(constants.GardenerOperation), operation, operations))
	}
	return errs
}

func gardenNamespace(namespace string) field.ErrorList {
	if namespace == constants.GardenNamespace {
		return nil
	}
	return field.ErrorList{field.Invalid(metadataPath.Child("namespace"), namespace, "must be garden")}
}

func updateStrategy(strategy *seedmanagementv1alpha1.UpdateStrategy, path *field.Path) field.ErrorList {
	if strategy == nil {
		return nil
	}
	var errs field.ErrorList
	if strategy.Type != nil {
		switch *strategy.Type {
		case "":
			errs = append(errs, field.Required(path.Child("type"), "must not be empty if it is set"))
		case seedmanagementv1alpha1.RollingUpdateStrategyType:
		default:
			errs = append(errs, field.NotSupported(path.Child("type"), *strategy.Type, []seedmanagementv1alpha1.UpdateStrategyType{seedmanagementv1alpha1.RollingUpdateStrategyType}))
		}
	}
	if strategy.RollingUpdate != nil {
		errs = append(errs, nonNegative(strategy.RollingUpdate.Partition, path.Child("rollingUpdate", "partition"))...)
	}
	return errs
}

// managedGardenlet checks the gardenlet of a shoot that becomes a seed, and returns its configuration.
func managedGardenlet(gardenlet *seedmanagementv1alpha1.GardenletConfig, path *field.Path) (*gardenletconfigv1alpha1.GardenletConfiguration, field.ErrorList) {
	var errs field.ErrorList
	if gardenlet.Deployment != nil {
		errs = append(errs, gardenletDeployment(gardenlet.Deployment, path.Child("deployment"))...)
	}
	bootstrap := seedmanagementv1alpha1.BootstrapToken
	if gardenlet.Bootstrap != nil {
		bootstrap = *gardenlet.Bootstrap
		known := []seedmanagementv1alpha1.Bootstrap{seedmanagementv1alpha1.BootstrapToken, seedmanagementv1alpha1.BootstrapServiceAccount, seedmanagementv1alpha1.BootstrapNone}
		if !slices.Contains(known, bootstrap) {
			errs = append(errs, field.NotSupported(path.Child("bootstrap"), bootstrap, known))
		}
	}
	config, configErrs := gardenletConfig(gardenlet.Config, path.Child("config"), bootstrap)
	if config != nil && config.SeedConfig == nil {
		errs = append(errs, field.Required(path.Child("config", "seedConfig"), "must be set"))
	}
	return config, append(errs, configErrs...)
}

func managedGardenletUpdate(gardenlet, old *seedmanagementv1alpha1.GardenletConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if old.Bootstrap != nil {
		errs = append(errs, apivalidation.ValidateImmutableField(gardenlet.Bootstrap, old.Bootstrap, path.Child("bootstrap"))...)
	}
	if old.MergeWithParent != nil {
		errs = append(errs, apivalidation.ValidateImmutableField(gardenlet.MergeWithParent, old.MergeWithParent, path.Child("mergeWithParent"))...)
	}
	return append(errs, seedConfigUpdate(gardenlet.Config, old.Config, path.Child("config"))...)
}

func gardenletDeployment(deployment *seedmanagementv1alpha1.GardenletDeployment, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, nonNegative(deployment.ReplicaCount, path.Child("replicaCount"))...)
	errs = append(errs, nonNegative(deployment.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	if deployment.ServiceAccountName != nil {
		for _, msg := range apivalidation.ValidateServiceAccountName(*deployment.ServiceAccountName, false) {
			errs = append(errs, field.Invalid(path.Child("serviceAccountName"), *deployment.ServiceAccountName, msg))
		}
	}
	if image := deployment.Image; image != nil {
		path := path.Child("image")
		for name, value := range ordered.Map(map[string]*string{"ref": image.Ref, "repository": image.Repository, "tag": image.Tag}) {
			if value != nil && *value == "" {
				errs = append(errs, field.Invalid(path.Child(name), "", "must not be empty if it is set"))
			}
		}
		if image.Ref != nil && *image.Ref != "" && (image.Repository != nil || image.Tag != nil) {
			errs = append(errs, field.Forbidden(path, "either ref, or repository and tag, can be set"))
		}
		if image.PullPolicy != nil {
			policies := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
			if !slices.Contains(policies, *image.PullPolicy) {
				errs = append(errs, field.NotSupported(path.Child("pullPolicy"), *image.PullPolicy, policies))
			}
		}
	}
	errs = append(errs, metav1validation.ValidateLabels(deployment.PodLabels, path.Child("podLabels"))...)
	return append(errs, apivalidation.ValidateAnnotations(deployment.PodAnnotations, path.Child("podAnnotations"))...)
}

// decodeConfig reads a gardenlet configuration. Defaulting has removed unknown fields.
func decodeConfig(raw *runtime.RawExtension) (*gardenletconfigv1alpha1.GardenletConfiguration, error) {
	config := &gardenletconfigv1alpha1.GardenletConfiguration{}
	if raw == nil || len(raw.Raw) == 0 {
		return config, nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, config); err != nil {
		return nil, err
	}
	want := gardenletconfigv1alpha1.SchemeGroupVersion.WithKind("GardenletConfiguration")
	if config.APIVersion != "" && config.APIVersion != want.GroupVersion().String() || config.Kind != "" && config.Kind != want.Kind {
		return nil, fmt.Errorf("must be a %s of %s", want.Kind, want.GroupVersion())
	}
	return config, nil
}

// gardenletConfig checks a gardenlet configuration, and returns it if it could be read.
func gardenletConfig(raw *runtime.RawExtension, path *field.Path, bootstrap seedmanagementv1alpha1.Bootstrap) (*gardenletconfigv1alpha1.GardenletConfiguration, field.ErrorList) {
	config, err := decodeConfig(raw)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, string(raw.Raw), err.Error())}
	}
	var errs field.ErrorList
	kubeconfig := config.GardenClientConnection != nil && config.GardenClientConnection.Kubeconfig != ""
	if bootstrap == seedmanagementv1alpha1.BootstrapNone && !kubeconfig {
		errs = append(errs, field.Required(path.Child("gardenClientConnection", "kubeconfig"), "must be set without a bootstrap"))
	}
	if bootstrap != seedmanagementv1alpha1.BootstrapNone && kubeconfig {
		errs = append(errs, field.Forbidden(path.Child("gardenClientConnection", "kubeconfig"), "comes from the bootstrap"))
	}
	return config, append(errs, gardenletvalidation.ValidateGardenletConfiguration(config, path, true)...)
}

// seedConfigUpdate checks what cannot be changed about the seed.
func seedConfigUpdate(raw, oldRaw *runtime.RawExtension, path *field.Path) field.ErrorList {
	config, err := decodeConfig(raw)
	old, oldErr := decodeConfig(oldRaw)
	if err != nil || oldErr != nil || config.SeedConfig == nil || old.SeedConfig == nil {
		return nil
	}
	path = path.Child("seedConfig", "spec")
	errs := core.ValidateSeedSpecUpdate(&config.SeedConfig.Spec, &old.SeedConfig.Spec, path)
	if old.SeedConfig.Spec.Backup != nil && config.SeedConfig.Spec.Backup == nil {
		errs = append(errs, field.Invalid(path.Child("backup"), "", "cannot be removed"))
	}
	return errs
}

func nonNegative(value *int32, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return apivalidation.ValidateNonnegativeField(int64(*value), path)
}
