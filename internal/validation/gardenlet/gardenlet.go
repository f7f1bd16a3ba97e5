// Package gardenlet validates the configuration of a gardenlet.
package gardenlet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/ordered"
)

const (
	minKubeconfigValidity = 10 * time.Minute
	// DNS records with a shorter TTL cause more load on the provider, those with a longer one make migrations of control planes slow.
	minDNSEntryTTL, maxDNSEntryTTL = 30, 600
	maxHandlerLength               = 34
)

var (
	logLevels  = []string{"debug", "info", "error"}
	logFormats = []string{"json", "text"}
)

// ValidateGardenletConfiguration checks a configuration, which is at a path; nil for that of a gardenlet. Unset settings get defaults; in a template, those
// of the seed are set later.
func ValidateGardenletConfiguration(config *gardenletconfigv1alpha1.GardenletConfiguration, path *field.Path, template bool) field.ErrorList {
	var errs field.ErrorList
	if config.GardenClientConnection != nil && config.GardenClientConnection.KubeconfigValidity != nil {
		errs = append(errs, kubeconfigValidity(config.GardenClientConnection.KubeconfigValidity, child(path, "gardenClientConnection", "kubeconfigValidity"))...)
	}
	if config.Controllers != nil {
		errs = append(errs, controllers(config.Controllers, child(path, "controllers"))...)
	}
	if config.LeaderElection != nil {
		errs = append(errs, leaderElection(config.LeaderElection, child(path, "leaderElection"))...)
	}
	if config.LogLevel != "" && !slices.Contains(logLevels, config.LogLevel) {
		errs = append(errs, field.NotSupported(child(path, "logLevel"), config.LogLevel, logLevels))
	}
	if config.LogFormat != "" && !slices.Contains(logFormats, config.LogFormat) {
		errs = append(errs, field.NotSupported(child(path, "logFormat"), config.LogFormat, logFormats))
	}
	if config.Resources != nil {
		errs = append(errs, resources(config.Resources, child(path, "resources"))...)
	}
	if config.SeedConfig != nil {
		errs = append(errs, core.ValidateSeedSpec(&config.SeedConfig.Spec, child(path, "seedConfig", "spec"), template)...)
	}
	if config.SNI != nil {
		errs = append(errs, ingress(config.SNI.Ingress, child(path, "sni", "ingress"))...)
	}
	errs = append(errs, handlers(config.ExposureClassHandlers, child(path, "exposureClassHandlers"))...)
	if toleration := config.NodeToleration; toleration != nil {
		errs = append(errs, nonNegative(toleration.DefaultNotReadyTolerationSeconds, child(path, "nodeToleration", "defaultNotReadyTolerationSeconds"))...)
		errs = append(errs, nonNegative(toleration.DefaultUnreachableTolerationSeconds, child(path, "nodeToleration", "defaultUnreachableTolerationSeconds"))...)
	}
	return errs
}

// handlers checks the handlers of ExposureClasses. Each has a namespace of its own, which is deleted with it.
func handlers(list []gardenletconfigv1alpha1.ExposureClassHandler, path *field.Path) (errs field.ErrorList) {
	names, namespaces := sets.New[string](), sets.New[string]()
	for i, handler := range list {
		path := path.Index(i)
		for _, msg := range validation.IsDNS1123Label(handler.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), handler.Name, msg))
		}
		if len(handler.Name) > maxHandlerLength {
			errs = append(errs, field.Invalid(path.Child("name"), handler.Name, "must have at most 34 characters"))
		}
		if handler.Name != "" && names.Has(handler.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), handler.Name))
		}
		names.Insert(handler.Name)
		errs = append(errs, apivalidation.ValidateAnnotations(handler.LoadBalancerService.Annotations, path.Child("loadBalancerService", "annotations"))...)
		if handler.SNI == nil || handler.SNI.Ingress == nil {
			continue
		}
		sni := path.Child("sni", "ingress")
		errs = append(errs, ingress(handler.SNI.Ingress, sni)...)
		if namespace := ptr.Deref(handler.SNI.Ingress.Namespace, ""); namespace != "" && namespaces.Has(namespace) {
			errs = append(errs, field.Duplicate(sni.Child("namespace"), namespace))
		} else {
			namespaces.Insert(namespace)
		}
	}
	return errs
}

// ingress checks the names, the address and the labels of a gateway.
func ingress(config *gardenletconfigv1alpha1.SNIIngress, path *field.Path) (errs field.ErrorList) {
	if config == nil {
		return nil
	}
	if namespace := config.Namespace; namespace != nil {
		for _, msg := range validation.IsDNS1123Label(*namespace) {
			errs = append(errs, field.Invalid(path.Child("namespace"), *namespace, msg))
		}
	}
	if name := config.ServiceName; name != nil {
		for _, msg := range validation.IsDNS1035Label(*name) {
			errs = append(errs, field.Invalid(path.Child("serviceName"), *name, msg))
		}
	}
	if ip := config.ServiceExternalIP; ip != nil {
		errs = append(errs, validation.IsValidIP(path.Child("serviceExternalIP"), *ip)...)
	}
	return append(errs, metav1validation.ValidateLabels(config.Labels, path.Child("labels"))...)
}

// child is path.Child for paths that may be nil.
func child(path *field.Path, name string, more ...string) *field.Path {
	if path == nil {
		return field.NewPath(name, more...)
	}
	return path.Child(name, more...)
}

func kubeconfigValidity(config *gardenletconfigv1alpha1.KubeconfigValidity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if config.Validity != nil && config.Validity.Duration < minKubeconfigValidity {
		errs = append(errs, field.Invalid(path.Child("validity"), config.Validity.Duration.String(), "must be at least 10 minutes"))
	}
	lowest, highest := config.AutoRotationJitterPercentageMin, config.AutoRotationJitterPercentageMax
	for name, value := range ordered.Map(map[string]*int32{"autoRotationJitterPercentageMin": lowest, "autoRotationJitterPercentageMax": highest}) {
		if value != nil && (*value < 1 || *value > 100) {
			errs = append(errs, field.Invalid(path.Child(name), *value, "must be between 1 and 100"))
		}
	}
	if lowest != nil && highest != nil && *lowest >= *highest {
		errs = append(errs, field.Invalid(path.Child("autoRotationJitterPercentageMin"), *lowest, "must be below autoRotationJitterPercentageMax"))
	}
	return errs
}

func controllers(config *gardenletconfigv1alpha1.GardenletControllerConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	syncs := func(value *int, path *field.Path) {
		if value != nil {
			errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*value), path.Child("concurrentSyncs"))...)
		}
	}
	period := func(value *metav1.Duration, path *field.Path) {
		if value != nil && value.Duration < 0 {
			errs = append(errs, field.Invalid(path, value.Duration.String(), "must not be negative"))
		}
	}
	if c := config.BackupBucket; c != nil {
		syncs(c.ConcurrentSyncs, path.Child("backupBucket"))
	}
	if c := config.BackupEntry; c != nil {
		path := path.Child("backupEntry")
		syncs(c.ConcurrentSyncs, path)
		hours := int64(0)
		if c.DeletionGracePeriodHours != nil {
			hours = int64(*c.DeletionGracePeriodHours)
			errs = append(errs, apivalidation.ValidateNonnegativeField(hours, path.Child("deletionGracePeriodHours"))...)
		}
		if len(c.DeletionGracePeriodShootPurposes) > 0 && hours <= 0 {
			errs = append(errs, field.Forbidden(path.Child("deletionGracePeriodShootPurposes"), "needs deletionGracePeriodHours"))
		}
		for i, purpose := range c.DeletionGracePeriodShootPurposes {
			errs = append(errs, shootPurpose(purpose, path.Child("deletionGracePeriodShootPurposes").Index(i))...)
		}
	}
	if c := config.Bastion; c != nil {
		syncs(c.ConcurrentSyncs, path.Child("bastion"))
	}
	if c := config.Shoot; c != nil {
		path := path.Child("shoot")
		syncs(c.ConcurrentSyncs, path)
		period(c.ProgressReportPeriod, path.Child("progressReporterPeriod"))
		period(c.RetryDuration, path.Child("retryDuration"))
		period(c.SyncPeriod, path.Child("syncPeriod"))
		if ttl := c.DNSEntryTTLSeconds; ttl != nil && (*ttl < minDNSEntryTTL || *ttl > maxDNSEntryTTL) {
			errs = append(errs, field.Invalid(path.Child("dnsEntryTTLSeconds"), *ttl, "must be between 30 and 600"))
		}
	}
	if c := config.ShootCare; c != nil {
		path := path.Child("shootCare")
		syncs(c.ConcurrentSyncs, path)
		period(c.SyncPeriod, path.Child("syncPeriod"))
		period(c.ManagedResourceProgressingThreshold, path.Child("managedResourceProgressingThreshold"))
		if c.StaleExtensionHealthChecks != nil {
			period(c.StaleExtensionHealthChecks.Threshold, path.Child("staleExtensionHealthChecks", "threshold"))
		}
		for i := range c.ConditionThresholds {
			period(&c.ConditionThresholds[i].Duration, path.Child("conditionThresholds").Index(i).Child("duration"))
		}
	}
	if c := config.ShootState; c != nil {
		syncs(c.ConcurrentSyncs, path.Child("shootState"))
	}
	if c := config.ManagedSeed; c != nil {
		path := path.Child("managedSeed")
		syncs(c.ConcurrentSyncs, path)
		period(c.SyncPeriod, path.Child("syncPeriod"))
		period(c.WaitSyncPeriod, path.Child("waitSyncPeriod"))
		period(c.SyncJitterPeriod, path.Child("syncJitterPeriod"))
	}
	if c := config.NetworkPolicy; c != nil {
		syncs(c.ConcurrentSyncs, path.Child("networkPolicy"))
	}
	return errs
}

var shootPurposes = []corev1beta1.ShootPurpose{
	corev1beta1.ShootPurposeEvaluation, corev1beta1.ShootPurposeTesting, corev1beta1.ShootPurposeDevelopment,
	corev1beta1.ShootPurposeProduction, corev1beta1.ShootPurposeInfrastructure,
}

func shootPurpose(purpose corev1beta1.ShootPurpose, path *field.Path) field.ErrorList {
	if slices.Contains(shootPurposes, purpose) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, purpose, shootPurposes)}
}

// leaderElection checks the rules of client-go.
func leaderElection(config *componentbaseconfigv1alpha1.LeaderElectionConfiguration, path *field.Path) field.ErrorList {
	if config.LeaderElect == nil || !*config.LeaderElect {
		return nil
	}
	var errs field.ErrorList
	lease, renew, retry := config.LeaseDuration.Duration, config.RenewDeadline.Duration, config.RetryPeriod.Duration
	for name, value := range ordered.Map(map[string]time.Duration{"leaseDuration": lease, "renewDeadline": renew, "retryPeriod": retry}) {
		if value <= 0 {
			errs = append(errs, field.Invalid(path.Child(name), value.String(), "must be positive"))
		}
	}
	if lease <= renew {
		errs = append(errs, field.Invalid(path.Child("leaseDuration"), renew.String(), "must be above renewDeadline"))
	}
	if renew <= retry {
		errs = append(errs, field.Invalid(path.Child("renewDeadline"), retry.String(), "must be above retryPeriod"))
	}
	if config.ResourceLock == "" {
		errs = append(errs, field.Required(path.Child("resourceLock"), "must be set"))
	}
	if config.ResourceName == "" {
		errs = append(errs, field.Required(path.Child("resourceName"), "must be set"))
	}
	return errs
}

func resources(config *gardenletconfigv1alpha1.ResourcesConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, quantity := range ordered.Map(config.Capacity) {
		if quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Child("capacity", string(name)), quantity.String(), "must not be negative"))
		}
	}
	for name, quantity := range ordered.Map(config.Reserved) {
		path := path.Child("reserved", string(name))
		capacity, ok := config.Capacity[corev1.ResourceName(name)]
		switch {
		case quantity.Sign() < 0:
			errs = append(errs, field.Invalid(path, quantity.String(), "must not be negative"))
		case !ok:
			errs = append(errs, field.Invalid(path, quantity.String(), "has no capacity"))
		case quantity.Cmp(capacity) > 0:
			errs = append(errs, field.Invalid(path, quantity.String(), "must not be above the capacity"))
		}
	}
	return errs
}

func nonNegative(value *int64, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return apivalidation.ValidateNonnegativeField(*value, path)
}
