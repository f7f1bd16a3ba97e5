package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/ordered"
)

func seedSettings(settings *corev1beta1.SeedSettings, zones []string, zonesUnknown bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if reservation := settings.ExcessCapacityReservation; reservation != nil {
		for i, config := range reservation.Configs {
			path := path.Child("excessCapacityReservation", "configs").Index(i)
			if len(config.Resources) == 0 {
				errs = append(errs, field.Required(path.Child("resources"), "must have at least one entry"))
			}
			for name, quantity := range ordered.Map(config.Resources) {
				errs = append(errs, nonNegative(quantity, path.Child("resources", string(name)))...)
			}
			errs = append(errs, podTolerations(config.Tolerations, path.Child("tolerations"))...)
		}
	}
	if loadBalancers := settings.LoadBalancerServices; loadBalancers != nil && !zonesUnknown {
		errs = append(errs, seedLoadBalancers(loadBalancers, zones, path.Child("loadBalancerServices"))...)
	}
	if settings.TopologyAwareRouting != nil && settings.TopologyAwareRouting.Enabled && len(zones) <= 1 && !zonesUnknown {
		errs = append(errs, field.Forbidden(path.Child("topologyAwareRouting", "enabled"), "needs a seed with more than one zone"))
	}
	if selection := settings.ZoneSelection; selection != nil {
		if len(zones) == 0 && !zonesUnknown {
			errs = append(errs, field.Forbidden(path.Child("zoneSelection"), "needs a seed with zones"))
		}
		errs = append(errs, supported(selection.Mode, []corev1beta1.ZoneSelectionMode{corev1beta1.ZoneSelectionModePrefer, corev1beta1.ZoneSelectionModeEnforce}, path.Child("zoneSelection", "mode"))...)
	}
	if autoscaler := settings.VerticalPodAutoscaler; autoscaler != nil {
		path := path.Child("verticalPodAutoscaler")
		errs = append(errs, autoscalerFeatureGates(autoscaler.FeatureGates, path.Child("featureGates"))...)
		errs = append(errs, autoscalerResources(autoscaler.MaxAllowed, path.Child("maxAllowed"))...)
	}
	return errs
}

func seedLoadBalancers(settings *corev1beta1.SeedSettingLoadBalancerServices, zones []string, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateAnnotations(settings.Annotations, path.Child("annotations"))
	errs = append(errs, externalTrafficPolicy(settings.ExternalTrafficPolicy, path.Child("externalTrafficPolicy"))...)
	if settings.Class != nil {
		for _, msg := range validation.IsQualifiedName(*settings.Class) {
			errs = append(errs, field.Invalid(path.Child("class"), *settings.Class, msg))
		}
	}
	if len(settings.Zones) > 0 && len(zones) <= 1 {
		errs = append(errs, field.Forbidden(path.Child("zones"), "needs a seed with more than one zone"))
	}
	names := sets.New[string]()
	for i, zone := range settings.Zones {
		path := path.Child("zones").Index(i)
		if !slices.Contains(zones, zone.Name) {
			errs = append(errs, field.NotFound(path.Child("name"), zone.Name))
		}
		if names.Has(zone.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), zone.Name))
		}
		names.Insert(zone.Name)
		errs = append(errs, apivalidation.ValidateAnnotations(zone.Annotations, path.Child("annotations"))...)
		errs = append(errs, externalTrafficPolicy(zone.ExternalTrafficPolicy, path.Child("externalTrafficPolicy"))...)
	}
	return errs
}

func externalTrafficPolicy(policy *corev1.ServiceExternalTrafficPolicy, path *field.Path) field.ErrorList {
	if policy == nil {
		return nil
	}
	return supported(*policy, []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal}, path)
}

// autoscalerGates are the feature gates of the vertical pod autoscaler that users can set.
var autoscalerGates = []string{"CPUStartupBoost", "InPlace", "InPlaceOrRecreate", "PerVPAConfig"}

func autoscalerFeatureGates(gates map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name := range ordered.Map(gates) {
		if !slices.Contains(autoscalerGates, name) {
			errs = append(errs, field.Invalid(path.Child(name), name, "is not a feature gate of the vertical pod autoscaler"))
		}
	}
	return errs
}

// autoscalerResources checks limits of recommendations: cpu and memory.
func autoscalerResources(resources corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, quantity := range ordered.Map(resources) {
		errs = append(errs, supported(name, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}, path.Child(string(name)))...)
		errs = append(errs, nonNegative(quantity, path.Child(string(name)))...)
	}
	return errs
}

// podTolerations checks tolerations of pods as Kubernetes does.
func podTolerations(list []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, toleration := range list {
		path := path.Index(i)
		if toleration.Key != "" {
			for _, msg := range validation.IsQualifiedName(toleration.Key) {
				errs = append(errs, field.Invalid(path.Child("key"), toleration.Key, msg))
			}
		} else if toleration.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(path.Child("operator"), toleration.Operator, "must be Exists without a key"))
		}
		if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(path.Child("effect"), toleration.Effect, "must be NoExecute with tolerationSeconds"))
		}
		switch toleration.Operator {
		case corev1.TolerationOpEqual, "":
			for _, msg := range validation.IsValidLabelValue(toleration.Value) {
				errs = append(errs, field.Invalid(path.Child("operator"), toleration.Value, msg))
			}
		case corev1.TolerationOpExists:
			if toleration.Value != "" {
				errs = append(errs, field.Invalid(path.Child("operator"), toleration.Operator, "must be Equal with a value"))
			}
		default:
			errs = append(errs, field.NotSupported(path.Child("operator"), toleration.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if toleration.Effect != "" {
			errs = append(errs, supported(toleration.Effect, []corev1.TaintEffect{
				corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
			}, path.Child("effect"))...)
		}
	}
	return errs
}
