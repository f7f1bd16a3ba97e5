package core

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/validation/ordered"
)

const (
	// maxPoolNameLength and maxVolumeNameLength limit the length of names of machines.
	maxPoolNameLength   = 15
	maxVolumeNameLength = 15
	// MaxKubeletSkew is how many minor versions a kubelet may be behind the kube-apiserver.
	MaxKubeletSkew = 3
	// maxPools is how many pools a shoot may have. Each has about ten objects in the seed and a DaemonSet of kube-proxy, all of which are in the memory of a
	// gardenlet in each pass, and a Shoot of thousands of pools still fits into an object of etcd. Keep it equal to maxPools in internal/component/kubeproxy.
	maxPools = 1000
)

// volumeSize is the form of sizes of volumes: whole gibibytes.
var volumeSize = regexp.MustCompile(`^\d+Gi$`)

func shootProvider(spec *corev1beta1.ShootSpec, version kubeVersion, opts Options, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	provider := path.Child("provider")
	if spec.Provider.Type == "" {
		errs = append(errs, field.Required(provider.Child("type"), "must be set"))
	} else {
		for _, msg := range validation.IsDNS1123Subdomain(spec.Provider.Type) {
			errs = append(errs, field.Invalid(provider.Child("type"), spec.Provider.Type, msg))
		}
	}
	if spec.Workerless() {
		return errs
	}

	workers := provider.Child("workers")
	names := sets.New[string]()
	for i := range spec.Provider.Workers {
		worker := &spec.Provider.Workers[i]
		errs = append(errs, shootWorker(worker, spec, version, opts, workers.Index(i))...)
		if worker.Name != "" && names.Has(worker.Name) {
			errs = append(errs, field.Duplicate(workers.Index(i).Child("name"), worker.Name))
		}
		names.Insert(worker.Name)
	}
	errs = append(errs, runtimeNames(spec.Provider.Workers, workers)...)
	return append(errs, systemComponentPools(spec.Provider.Workers, workers)...)
}

// poolsAdded refuses more pools than maxPools, unless there were as many before.
func poolsAdded(now, before []corev1beta1.Worker, path *field.Path) field.ErrorList {
	if len(now) <= max(maxPools, len(before)) {
		return nil
	}
	return field.ErrorList{field.TooMany(path, len(now), maxPools)}
}

// runtimeNames checks that no two ContainerRuntimes would have the same name, which is that of the type and of the pool.
func runtimeNames(workers []corev1beta1.Worker, path *field.Path) field.ErrorList {
	type runtime struct{ kind, pool string }
	var errs field.ErrorList
	seen := map[string]runtime{}
	for i := range workers {
		if workers[i].CRI == nil {
			continue
		}
		for j, r := range workers[i].CRI.ContainerRuntimes {
			name, current := r.Type+"-"+workers[i].Name, runtime{r.Type, workers[i].Name}
			if other, ok := seen[name]; ok && other != current { // the same twice is reported elsewhere
				errs = append(errs, field.Invalid(path.Index(i).Child("cri", "containerruntimes").Index(j).Child("type"), r.Type,
					fmt.Sprintf("its resource would be named %q, as that of type %q of pool %q: rename the pool", name, other.kind, other.pool)))
				continue
			}
			seen[name] = current
		}
	}
	return errs
}

// systemComponentPools checks that system components find nodes.
func systemComponentPools(workers []corev1beta1.Worker, path *field.Path) field.ErrorList {
	for _, worker := range workers {
		if allowsSystemComponents(&worker) && worker.Maximum != 0 {
			return nil
		}
	}
	return field.ErrorList{field.Forbidden(path, "at least one pool that can have nodes must allow system components")}
}

func shootWorker(worker *corev1beta1.Worker, spec *corev1beta1.ShootSpec, version kubeVersion, opts Options, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(worker.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), worker.Name, msg))
	}
	if len(worker.Name) > maxPoolNameLength {
		errs = append(errs, field.TooLong(path.Child("name"), worker.Name, maxPoolNameLength))
	}
	if worker.Machine.Type == "" {
		errs = append(errs, field.Required(path.Child("machine", "type"), "must be set"))
	}
	if image := worker.Machine.Image; image != nil && image.Name == "" {
		errs = append(errs, field.Required(path.Child("machine", "image", "name"), "must be set"))
	} else if image != nil && ptr.Deref(image.Version, "") == "" {
		errs = append(errs, field.Required(path.Child("machine", "image", "version"), "must be set"))
	}
	if worker.Machine.Architecture != nil {
		errs = append(errs, supported(*worker.Machine.Architecture, architectures, path.Child("machine", "architecture"))...)
	}
	errs = append(errs, poolSize(worker, path)...)
	errs = append(errs, poolUpdates(worker, opts, path)...)
	errs = append(errs, metav1validation.ValidateLabels(worker.Labels, path.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(worker.Annotations, path.Child("annotations"))...)
	errs = append(errs, nodeTaints(worker.Taints, path.Child("taints"))...)
	errs = append(errs, poolVolumes(worker, path)...)
	errs = append(errs, poolCRI(worker.CRI, path.Child("cri"))...)
	errs = append(errs, caBundle(worker.CABundle, path.Child("caBundle"))...)
	errs = append(errs, sysctls(worker.Sysctls, path.Child("sysctls"))...)
	errs = append(errs, poolAutoscaler(worker.ClusterAutoscaler, path.Child("autoscaler"))...)
	errs = append(errs, poolMachineControllerManager(worker, path.Child("machineControllerManagerSettings"))...)
	if worker.Priority != nil && *worker.Priority < -1 {
		errs = append(errs, field.Invalid(path.Child("priority"), *worker.Priority, "must be at least -1"))
	}
	return append(errs, poolKubernetes(worker, spec, version, path.Child("kubernetes"))...)
}

func poolSize(worker *corev1beta1.Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range ordered.Map(map[string]int32{"minimum": worker.Minimum, "maximum": worker.Maximum}) {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(value), path.Child(name))...)
	}
	if worker.Maximum < worker.Minimum {
		errs = append(errs, field.Forbidden(path.Child("maximum"), "must not be below the minimum"))
	}
	if worker.Maximum != 0 && int(worker.Maximum) < len(worker.Zones) && worker.Minimum > 0 {
		errs = append(errs, field.Forbidden(path.Child("maximum"), "must be at least the number of zones"))
	}
	return errs
}

func poolUpdates(worker *corev1beta1.Worker, opts Options, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	strategy := corev1beta1.AutoRollingUpdate
	if worker.UpdateStrategy != nil {
		strategy = *worker.UpdateStrategy
		errs = append(errs, supported(strategy, []corev1beta1.MachineUpdateStrategy{
			corev1beta1.AutoRollingUpdate, corev1beta1.AutoInPlaceUpdate, corev1beta1.ManualInPlaceUpdate,
		}, path.Child("updateStrategy"))...)
	}
	if strategy.InPlace() && !opts.InPlaceNodeUpdates {
		errs = append(errs, field.Invalid(path.Child("updateStrategy"), strategy, "needs the feature gate InPlaceNodeUpdates"))
	}
	if strategy == corev1beta1.ManualInPlaceUpdate {
		if worker.MaxSurge != nil && !isZero(worker.MaxSurge) {
			errs = append(errs, field.Invalid(path.Child("maxSurge"), worker.MaxSurge.String(), "must be 0 for manual updates"))
		}
		if worker.MaxUnavailable != nil && !isZero(worker.MaxUnavailable) {
			errs = append(errs, field.Invalid(path.Child("maxUnavailable"), worker.MaxUnavailable.String(), "must be 0 for manual updates"))
		}
		return errs
	}
	errs = append(errs, intOrPercent(worker.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, intOrPercent(worker.MaxSurge, path.Child("maxSurge"))...)
	if isZero(worker.MaxUnavailable) && isZero(worker.MaxSurge) {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), worker.MaxUnavailable.String(), "must not be 0 when maxSurge is 0"))
	}
	if strings.HasSuffix(worker.MaxUnavailable.String(), "%") && percent(worker.MaxUnavailable) > 100 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), worker.MaxUnavailable.String(), "must be at most 100%"))
	}
	return errs
}

func intOrPercent(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Type == intstr.String {
		var errs field.ErrorList
		for _, msg := range validation.IsValidPercent(value.StrVal) {
			errs = append(errs, field.Invalid(path, value.StrVal, msg))
		}
		return errs
	}
	return apivalidation.ValidateNonnegativeField(int64(value.IntVal), path)
}

// percent returns the number of a percentage, or 0.
func percent(value *intstr.IntOrString) int {
	if value == nil || value.Type != intstr.String {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	return n
}

// isZero reports whether a number or percentage is zero. An invalid value counts as zero.
func isZero(value *intstr.IntOrString) bool {
	if value == nil {
		return true
	}
	if value.Type == intstr.String {
		return percent(value) == 0
	}
	return value.IntVal == 0
}

// nodeTaints checks the taints of nodes as Kubernetes does.
func nodeTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, taint := range taints {
		path := path.Index(i)
		for _, msg := range validation.IsQualifiedName(taint.Key) {
			errs = append(errs, field.Invalid(path.Child("key"), taint.Key, msg))
		}
		if taint.Key == constants.TaintNodeCriticalComponentsNotReady {
			errs = append(errs, field.Forbidden(path.Child("key"), "is set by Gardener"))
		}
		for _, msg := range validation.IsValidLabelValue(taint.Value) {
			errs = append(errs, field.Invalid(path.Child("value"), taint.Value, msg))
		}
		if taint.Effect == "" {
			errs = append(errs, field.Required(path.Child("effect"), "must be set"))
		} else {
			errs = append(errs, supported(taint.Effect, []corev1.TaintEffect{
				corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
			}, path.Child("effect"))...)
		}
		if id := taint.Key + ":" + string(taint.Effect); seen.Has(id) {
			errs = append(errs, field.Duplicate(path, id))
		} else {
			seen.Insert(id)
		}
	}
	return errs
}

func poolVolumes(worker *corev1beta1.Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	size := func(size string, path *field.Path) {
		if !volumeSize.MatchString(size) {
			errs = append(errs, field.Invalid(path, size, "must be whole gibibytes, such as 50Gi"))
		}
	}
	if volume := worker.Volume; volume != nil {
		size(volume.VolumeSize, path.Child("volume", "size"))
		if volume.Name != nil {
			errs = append(errs, volumeName(*volume.Name, path.Child("volume", "name"))...)
		}
	} else if len(worker.DataVolumes) > 0 {
		errs = append(errs, field.Required(path.Child("volume"), "must be set if there are data volumes"))
	}
	names := sets.New[string]()
	for i, volume := range worker.DataVolumes {
		path := path.Child("dataVolumes").Index(i)
		errs = append(errs, volumeName(volume.Name, path.Child("name"))...)
		if volume.Name != "" && names.Has(volume.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), volume.Name))
		}
		names.Insert(volume.Name)
		size(volume.VolumeSize, path.Child("size"))
	}
	if worker.KubeletDataVolumeName != nil && !names.Has(*worker.KubeletDataVolumeName) {
		errs = append(errs, field.Invalid(path.Child("kubeletDataVolumeName"), *worker.KubeletDataVolumeName, "must be the name of a data volume"))
	}
	return errs
}

func volumeName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	if len(name) > maxVolumeNameLength {
		errs = append(errs, field.TooLong(path, name, maxVolumeNameLength))
	}
	return errs
}

func poolCRI(cri *corev1beta1.CRI, path *field.Path) field.ErrorList {
	if cri == nil {
		return nil
	}
	errs := supported(cri.Name, []corev1beta1.CRIName{corev1beta1.CRINameContainerD}, path.Child("name"))
	types := sets.New[string]()
	for i, runtime := range cri.ContainerRuntimes {
		path := path.Child("containerruntimes").Index(i).Child("type")
		if runtime.Type == "" {
			errs = append(errs, field.Required(path, "must be set"))
		} else if types.Has(runtime.Type) {
			errs = append(errs, field.Duplicate(path, runtime.Type))
		}
		types.Insert(runtime.Type)
	}
	return errs
}

// sysctlName is the form of names of kernel settings, with dots or slashes.
var sysctlName = regexp.MustCompile(`^([A-Za-z0-9]([-_A-Za-z0-9]*[A-Za-z0-9])?[\./])*[A-Za-z0-9]([-_A-Za-z0-9]*[A-Za-z0-9])?$`)

func sysctls(settings map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range ordered.Map(settings) {
		path := path.Child(name)
		if !sysctlName.MatchString(name) {
			errs = append(errs, field.Invalid(path, name, "must be the name of a kernel setting"))
		}
		if value == "" {
			errs = append(errs, field.Required(path, "must have a value"))
		}
	}
	return errs
}

func poolAutoscaler(options *corev1beta1.ClusterAutoscalerOptions, path *field.Path) field.ErrorList {
	if options == nil {
		return nil
	}
	var errs field.ErrorList
	errs = append(errs, fraction(options.ScaleDownUtilizationThreshold, path.Child("scaleDownUtilizationThreshold"))...)
	errs = append(errs, fraction(options.ScaleDownGpuUtilizationThreshold, path.Child("scaleDownGpuUtilizationThreshold"))...)
	errs = append(errs, duration(options.ScaleDownUnneededTime, path.Child("scaleDownUnneededTime"))...)
	errs = append(errs, duration(options.ScaleDownUnreadyTime, path.Child("scaleDownUnreadyTime"))...)
	return append(errs, duration(options.MaxNodeProvisionTime, path.Child("maxNodeProvisionTime"))...)
}

// fraction checks a number between 0 and 1.
func fraction(value *float64, path *field.Path) field.ErrorList {
	if value != nil && (*value < 0 || *value > 1) {
		return field.ErrorList{field.Invalid(path, *value, "must be between 0 and 1")}
	}
	return nil
}

// duration checks that a time is not negative.
func duration(value *metav1.Duration, path *field.Path) field.ErrorList {
	if value != nil && value.Duration < 0 {
		return field.ErrorList{field.Invalid(path, value.Duration.String(), "must not be negative")}
	}
	return nil
}

// positive checks that a time is not zero either.
func positive(value *metav1.Duration, path *field.Path) field.ErrorList {
	if value != nil && value.Duration <= 0 {
		return field.ErrorList{field.Invalid(path, value.Duration.String(), "must be positive")}
	}
	return nil
}

// within checks that a time is in a range.
func within(value *metav1.Duration, lowest, highest time.Duration, path *field.Path) field.ErrorList {
	if value != nil && (value.Duration < lowest || value.Duration > highest) {
		return field.ErrorList{field.Invalid(path, value.Duration.String(), "must be between "+lowest.String()+" and "+highest.String())}
	}
	return nil
}

// nonNegativeInt checks that a number is not negative.
func nonNegativeInt[T int32 | int64](value *T, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return apivalidation.ValidateNonnegativeField(int64(*value), path)
}

func poolMachineControllerManager(worker *corev1beta1.Worker, path *field.Path) field.ErrorList {
	settings := worker.MachineControllerManager
	if settings == nil {
		return nil
	}
	var errs field.ErrorList
	errs = append(errs, duration(settings.MachineDrainTimeout, path.Child("machineDrainTimeout"))...)
	errs = append(errs, duration(settings.MachineHealthTimeout, path.Child("machineHealthTimeout"))...)
	errs = append(errs, duration(settings.MachineCreationTimeout, path.Child("machineCreationTimeout"))...)
	errs = append(errs, positive(settings.MachinePreserveTimeout, path.Child("machinePreserveTimeout"))...)
	errs = append(errs, nonNegativeInt(settings.MaxEvictRetries, path.Child("maxEvictRetries"))...)
	errs = append(errs, preservedMachines(worker, path.Child("autoPreserveFailedMachineMax"))...)
	if !worker.UpdateStrategy.InPlace() {
		if settings.InPlaceUpdateTimeout != nil {
			errs = append(errs, field.Forbidden(path.Child("inPlaceUpdateTimeout"), "is for in-place updates only"))
		}
		if settings.DisableHealthTimeout != nil && *settings.DisableHealthTimeout {
			errs = append(errs, field.Forbidden(path.Child("disableHealthTimeout"), "is for in-place updates only"))
		}
		return errs
	}
	return append(errs, duration(settings.InPlaceUpdateTimeout, path.Child("inPlaceUpdateTimeout"))...)
}

// preservedMachines limits how many failed machines of a pool are kept for inspection: one has to be left for system components.
func preservedMachines(worker *corev1beta1.Worker, path *field.Path) field.ErrorList {
	n, most, rule := ptr.Deref(worker.MachineControllerManager.AutoPreserveFailedMachineMax, 0), worker.Maximum, "must be between 0 and the maximum of the pool"
	if allowsSystemComponents(worker) {
		most, rule = max(0, worker.Maximum-1), "must be between 0 and one less than the maximum of the pool, as the pool is for system components, too"
	}
	if n < 0 || n > most {
		return field.ErrorList{field.Invalid(path, n, rule)}
	}
	return nil
}

// allowsSystemComponents reports whether system components may run in a pool.
func allowsSystemComponents(worker *corev1beta1.Worker) bool {
	return worker.SystemComponents == nil || worker.SystemComponents.Allow
}

func poolKubernetes(worker *corev1beta1.Worker, spec *corev1beta1.ShootSpec, version kubeVersion, path *field.Path) field.ErrorList {
	if worker.Kubernetes == nil {
		return nil
	}
	var errs field.ErrorList
	poolVersion := version
	if worker.Kubernetes.Version != nil {
		poolVersion = parseVersion(*worker.Kubernetes.Version)
		errs = append(errs, kubeletSkew(*worker.Kubernetes.Version, poolVersion, version, path.Child("version"))...)
	}
	own := worker.Kubernetes.Kubelet
	if own != nil {
		errs = append(errs, kubeletConfig(own, poolVersion, path.Child("kubelet"))...)
	}
	if kubelet := worker.KubeletConfig(spec.Kubernetes.Kubelet); kubelet != nil && kubelet != own && worker.Kubernetes.Version != nil {
		// The configuration of the cluster applies to this pool, too.
		errs = append(errs, verificationPolicy(kubelet, poolVersion, path.Child("kubelet"))...)
	}
	return errs
}

// kubeletSkew refuses a pool that is newer than the control plane, or too old for it.
func kubeletSkew(text string, pool, cluster kubeVersion, path *field.Path) field.ErrorList {
	switch {
	case cluster.Version == nil:
		return nil
	case pool.Version == nil:
		return field.ErrorList{field.Forbidden(path, "must be a version like 1.36.1")}
	case pool.GreaterThan(cluster.Version):
		return field.ErrorList{field.Forbidden(path, text+" is newer than the control plane")}
	case pool.Major() != cluster.Major() || pool.Minor()+MaxKubeletSkew < cluster.Minor():
		return field.ErrorList{field.Forbidden(path, text+" is more than three minor versions behind the control plane")}
	}
	return nil
}
