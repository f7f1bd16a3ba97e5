package core

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/ordered"
)

// minPodPids is the least that pods need to start.
const minPodPids = 100

// percentage is the form of shares of a resource.
var percentage = regexp.MustCompile(`^(100|\d{1,2})(\.\d+)?%$`)

func kubeletConfig(config *corev1beta1.KubeletConfig, version kubeVersion, path *field.Path) field.ErrorList {
	errs := featureGates(config.FeatureGates, version, path.Child("featureGates"))
	errs = append(errs, nonNegativeInt(config.MaxPods, path.Child("maxPods"))...)
	if config.PodPidsLimit != nil && *config.PodPidsLimit < minPodPids {
		errs = append(errs, field.Invalid(path.Child("podPIDsLimit"), *config.PodPidsLimit, "must be at least 100"))
	}
	if config.CPUManagerPolicy != nil {
		errs = append(errs, supported(*config.CPUManagerPolicy, []string{"none", "static"}, path.Child("cpuManagerPolicy"))...)
	}
	errs = append(errs, nonNegativeInt(config.EvictionMaxPodGracePeriod, path.Child("evictionMaxPodGracePeriod"))...)
	errs = append(errs, duration(config.EvictionPressureTransitionPeriod, path.Child("evictionPressureTransitionPeriod"))...)
	errs = append(errs, kubeletEviction(config, path)...)
	errs = append(errs, kubeletReserved(config.KubeReserved, path.Child("kubeReserved"))...)
	errs = append(errs, kubeletImages(config, version, path)...)
	errs = append(errs, nonNegativeInt(config.RegistryPullQPS, path.Child("registryPullQPS"))...)
	errs = append(errs, nonNegativeInt(config.RegistryBurst, path.Child("registryBurst"))...)
	if config.ContainerLogMaxFiles != nil && *config.ContainerLogMaxFiles < 2 {
		errs = append(errs, field.Invalid(path.Child("containerLogMaxFiles"), *config.ContainerLogMaxFiles, "must be at least 2"))
	}
	if config.ContainerLogMaxSize != nil {
		errs = append(errs, nonNegative(*config.ContainerLogMaxSize, path.Child("containerLogMaxSize"))...)
	}
	errs = append(errs, within(config.StreamingConnectionIdleTimeout, 30*time.Second, 4*time.Hour, path.Child("streamingConnectionIdleTimeout"))...)
	if config.MemorySwap != nil {
		errs = append(errs, memorySwap(config, path.Child("memorySwap"))...)
	}
	return errs
}

// kubeletsStart refuses changes after which no kubelet of a pool, or of the cluster, would start. The original accepts them, so
// configurations from before stay as they are.
func kubeletsStart(spec, before *corev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if now := spec.Kubernetes.Kubelet; now != nil && !equal(now, before.Kubernetes.Kubelet) {
		errs = append(errs, kubeletStarts(now, path.Child("kubernetes", "kubelet"))...)
	}
	own := func(worker *corev1beta1.Worker) *corev1beta1.KubeletConfig {
		if worker.Kubernetes == nil {
			return nil
		}
		return worker.Kubernetes.Kubelet
	}
	for i := range spec.Provider.Workers {
		worker, then := &spec.Provider.Workers[i], &corev1beta1.Worker{}
		if j := slices.IndexFunc(before.Provider.Workers, func(w corev1beta1.Worker) bool { return w.Name == worker.Name }); j >= 0 {
			then = &before.Provider.Workers[j]
		}
		if now := own(worker); now != nil && !equal(now, own(then)) {
			errs = append(errs, kubeletStarts(now, path.Child("provider", "workers").Index(i).Child("kubernetes", "kubelet"))...)
		}
	}
	return errs
}

// kubeletStarts checks what kubelets check when they start, with the defaults of Gardener. kubeletConfig has some of the checks
// already. Source: validation.go and eviction/helpers.go of the kubelet.
func kubeletStarts(config *corev1beta1.KubeletConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const defaultHigh, defaultLow = corev1beta1.DefaultImageGCHighThresholdPercent, corev1beta1.DefaultImageGCLowThresholdPercent
	switch high, low := config.ImageGCHighThresholdPercent, config.ImageGCLowThresholdPercent; {
	case high == nil && low != nil && *low >= defaultHigh:
		errs = append(errs, field.Forbidden(path.Child("imageGCLowThresholdPercent"),
			fmt.Sprintf("must be below imageGCHighThresholdPercent, which is %d if unset", defaultHigh)))
	case high != nil && low == nil && *high <= defaultLow:
		errs = append(errs, field.Forbidden(path.Child("imageGCHighThresholdPercent"),
			fmt.Sprintf("must be above imageGCLowThresholdPercent, which is %d if unset", defaultLow)))
	}
	youngest := corev1beta1.DefaultImageMinimumGCAge
	if age := config.ImageMinimumGCAge; age != nil && age.Duration > 0 { // 0 is the default of a kubelet, which is the same
		youngest = age.Duration
	}
	if oldest := config.ImageMaximumGCAge; oldest != nil && oldest.Duration > 0 && oldest.Duration <= youngest {
		errs = append(errs, field.Invalid(path.Child("imageMaximumGCAge"), oldest.Duration.String(),
			fmt.Sprintf("must be 0, or above imageMinimumGCAge, which is %s", youngest)))
	}
	for name, limits := range evictionLimits(config) {
		for signal, value := range evictionSignals(limits) {
			if value != nil && outOfRange(*value) {
				errs = append(errs, field.Invalid(path.Child(name, signal), *value, "must be above 0, and at most 100%; 0% turns it off"))
			}
		}
	}
	return errs
}

// outOfRange reports whether a limit of evictions is invalid, or more than a resource can have.
func outOfRange(limit string) bool {
	if share, ok := strings.CutSuffix(limit, "%"); ok {
		percent, err := strconv.ParseFloat(share, 64)
		return err == nil && percent > 100
	}
	quantity, err := resource.ParseQuantity(limit)
	return err == nil && quantity.IsZero()
}

// nodeInodes is in the paths of errors about free inodes of nodes.
const nodeInodes = "nodefsInodesFree"

// evictionLimits are the limits of evictions by the name of their field.
func evictionLimits(config *corev1beta1.KubeletConfig) iter.Seq2[string, *corev1beta1.KubeletConfigEviction] {
	return ordered.Map(map[string]*corev1beta1.KubeletConfigEviction{"evictionHard": config.EvictionHard, "evictionSoft": config.EvictionSoft})
}

// evictionSignals are limits by their names in paths of errors, which are those of the original.
func evictionSignals(limits *corev1beta1.KubeletConfigEviction) iter.Seq2[string, *string] {
	if limits == nil {
		limits = &corev1beta1.KubeletConfigEviction{}
	}
	return ordered.Map(map[string]*string{
		"memoryAvailable": limits.MemoryAvailable, "imagefsAvailable": limits.ImageFSAvailable, "imagefsInodesFree": limits.ImageFSInodesFree,
		"nodefsAvailable": limits.NodeFSAvailable, nodeInodes: limits.NodeFSInodesFree,
	})
}

func memorySwap(config *corev1beta1.KubeletConfig, path *field.Path) field.ErrorList {
	if config.FailSwapOn == nil || *config.FailSwapOn {
		return field.ErrorList{field.Forbidden(path, "needs failSwapOn: false")}
	}
	if !config.FeatureGates["NodeSwap"] {
		return field.ErrorList{field.Forbidden(path, "needs the feature gate NodeSwap")}
	}
	if config.MemorySwap.SwapBehavior == nil {
		return nil
	}
	return supported(*config.MemorySwap.SwapBehavior, []corev1beta1.SwapBehavior{corev1beta1.NoSwap, corev1beta1.LimitedSwap}, path.Child("swapBehavior"))
}

func kubeletEviction(config *corev1beta1.KubeletConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, limits := range evictionLimits(config) {
		for signal, value := range evictionSignals(limits) {
			if signal != nodeInodes { // the original accepts any text; kubelets get the default instead of an invalid limit
				errs = append(errs, quantityOrPercentage(value, path.Child(name, signal))...)
			}
		}
	}
	if reclaim := config.EvictionMinimumReclaim; reclaim != nil {
		path := path.Child("evictionMinimumReclaim")
		for signal, value := range ordered.Map(map[string]*resource.Quantity{
			"memoryAvailable": reclaim.MemoryAvailable, "imagefsAvailable": reclaim.ImageFSAvailable, "imagefsInodesFree": reclaim.ImageFSInodesFree,
			"nodefsAvailable": reclaim.NodeFSAvailable, nodeInodes: reclaim.NodeFSInodesFree,
		}) {
			if value != nil {
				errs = append(errs, nonNegative(*value, path.Child(signal))...)
			}
		}
	}
	if grace := config.EvictionSoftGracePeriod; grace != nil {
		path := path.Child("evictionSoftGracePeriod")
		errs = append(errs, duration(grace.MemoryAvailable, path.Child("memoryAvailable"))...)
		errs = append(errs, duration(grace.ImageFSAvailable, path.Child("imagefsAvailable"))...)
		errs = append(errs, duration(grace.ImageFSInodesFree, path.Child("imagefsInodesFree"))...)
		errs = append(errs, duration(grace.NodeFSAvailable, path.Child("nodefsAvailable"))...)
		errs = append(errs, duration(grace.NodeFSInodesFree, path.Child(nodeInodes))...)
	}
	return errs
}

func quantityOrPercentage(value *string, path *field.Path) field.ErrorList {
	if value == nil || percentage.MatchString(*value) {
		return nil
	}
	quantity, err := resource.ParseQuantity(*value)
	if err != nil {
		return field.ErrorList{field.Invalid(path, *value, "must be a quantity or a percentage")}
	}
	return nonNegative(quantity, path)
}

func kubeletReserved(reserved *corev1beta1.KubeletConfigReserved, path *field.Path) field.ErrorList {
	if reserved == nil {
		return nil
	}
	var errs field.ErrorList
	for name, value := range ordered.Map(map[string]*resource.Quantity{
		"cpu": reserved.CPU, "memory": reserved.Memory, "ephemeralStorage": reserved.EphemeralStorage, "pid": reserved.PID,
	}) {
		if value != nil {
			errs = append(errs, nonNegative(*value, path.Child(name))...)
		}
	}
	return errs
}

// verificationPolicy checks that a kubelet of the version has the policy.
func verificationPolicy(config *corev1beta1.KubeletConfig, version kubeVersion, path *field.Path) field.ErrorList {
	if config.ImagePullCredentialsVerificationPolicy == nil {
		return nil
	}
	enabled, ok := config.FeatureGates["KubeletEnsureSecretPulledImages"]
	if !ok {
		enabled, ok = config.FeatureGates["AllBeta"] // the gate is one of them
	}
	if ok && !enabled {
		return field.ErrorList{field.Forbidden(path.Child("imagePullCredentialsVerificationPolicy"), "needs the feature gate KubeletEnsureSecretPulledImages")}
	}
	if version.below(1, 35) {
		return field.ErrorList{field.Forbidden(path.Child("imagePullCredentialsVerificationPolicy"), "needs Kubernetes 1.35")}
	}
	return nil
}

var verificationPolicies = []corev1beta1.ImagePullCredentialsVerificationPolicy{
	corev1beta1.NeverVerify, corev1beta1.NeverVerifyPreloadedImages, corev1beta1.NeverVerifyAllowlistedImages, corev1beta1.AlwaysVerify,
}

// imagePattern is an image without tag and digest, whose last part may be a wildcard.
var imagePattern = regexp.MustCompile(`^([a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+(:[0-9]+)?|[a-zA-Z0-9-]+:[0-9]+|[a-z0-9]+([._-]+[a-z0-9]+)*)(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(/\*)?$`)

func kubeletImages(config *corev1beta1.KubeletConfig, version kubeVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	high, low := config.ImageGCHighThresholdPercent, config.ImageGCLowThresholdPercent
	for name, value := range ordered.Map(map[string]*int32{"imageGCHighThresholdPercent": high, "imageGCLowThresholdPercent": low}) {
		if value != nil && (*value < 0 || *value > 100) {
			errs = append(errs, field.Invalid(path.Child(name), *value, "must be between 0 and 100"))
		}
	}
	if high != nil && low != nil && *low >= *high {
		errs = append(errs, field.Forbidden(path.Child("imageGCLowThresholdPercent"), "must be below imageGCHighThresholdPercent"))
	}
	errs = append(errs, duration(config.ImageMinimumGCAge, path.Child("imageMinimumGCAge"))...)
	errs = append(errs, duration(config.ImageMaximumGCAge, path.Child("imageMaximumGCAge"))...)
	if pulls := config.MaxParallelImagePulls; pulls != nil {
		path := path.Child("maxParallelImagePulls")
		if *pulls < 1 {
			errs = append(errs, field.Invalid(path, *pulls, "must be positive"))
		} else if *pulls > 1 && config.SerializeImagePulls != nil && *config.SerializeImagePulls {
			errs = append(errs, field.Forbidden(path, "must be 1 with serializeImagePulls"))
		}
	}

	policy, allowlist := config.ImagePullCredentialsVerificationPolicy, config.PreloadedImagesVerificationAllowlist
	errs = append(errs, verificationPolicy(config, version, path)...)
	if policy != nil {
		errs = append(errs, supported(*policy, verificationPolicies, path.Child("imagePullCredentialsVerificationPolicy"))...)
	}
	if len(allowlist) > 0 && ptr.Deref(policy, "") != corev1beta1.NeverVerifyAllowlistedImages {
		errs = append(errs, field.Forbidden(path.Child("preloadedImagesVerificationAllowlist"), "needs the policy NeverVerifyAllowlistedImages"))
	} else {
		for i, image := range allowlist {
			path := path.Child("preloadedImagesVerificationAllowlist").Index(i)
			if !imagePattern.MatchString(image) {
				errs = append(errs, field.Invalid(path, image, "must be an image without tag and digest, and may end in /*"))
			}
			if slices.Contains(allowlist[:i], image) {
				errs = append(errs, field.Duplicate(path, image))
			}
		}
	}
	return errs
}
