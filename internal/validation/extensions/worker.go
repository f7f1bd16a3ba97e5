package extensions

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateWorker checks a new Worker.
func ValidateWorker(worker *extensionsv1alpha1.Worker) field.ErrorList {
	spec := &worker.Spec
	errs := validate(&worker.ObjectMeta, true, &spec.DefaultSpec)
	errs = append(errs, required(spec.Region, specPath.Child("region"))...)
	errs = append(errs, secretReference(spec.SecretRef, specPath.Child("secretRef"))...)
	names := sets.New[string]()
	for i := range spec.Pools {
		pool, path := &spec.Pools[i], specPath.Child("pools").Index(i)
		errs = append(errs, workerPool(pool, path)...)
		if names.Has(pool.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), pool.Name))
		}
		names.Insert(pool.Name)
	}
	return errs
}

// ValidateWorkerUpdate checks a changed Worker.
func ValidateWorkerUpdate(worker, old *extensionsv1alpha1.Worker) field.ErrorList {
	if errs, done := frozen(&worker.ObjectMeta, worker.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&worker.ObjectMeta, &old.ObjectMeta, &worker.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	errs = append(errs, immutable(worker.Spec.Region, old.Spec.Region, specPath.Child("region"))...)
	return append(errs, ValidateWorker(worker)...)
}

func workerPool(pool *extensionsv1alpha1.WorkerPool, path *field.Path) field.ErrorList {
	errs := required(pool.Name, path.Child("name"))
	errs = append(errs, required(pool.MachineType, path.Child("machineType"))...)
	errs = append(errs, poolSize(pool, path)...)
	if pool.MachineImage != nil {
		errs = append(errs, required(pool.MachineImage.Name, path.Child("machineImage", "name"))...)
		errs = append(errs, required(pool.MachineImage.Version, path.Child("machineImage", "version"))...)
	}
	errs = append(errs, required(pool.UserDataSecretRef.Name, path.Child("userDataSecretRef", "name"))...)
	errs = append(errs, required(pool.UserDataSecretRef.Key, path.Child("userDataSecretRef", "key"))...)

	errs = append(errs, apivalidation.ValidateAnnotations(pool.Annotations, path.Child("annotations"))...)
	errs = append(errs, metav1validation.ValidateLabels(pool.Labels, path.Child("labels"))...)
	for i, taint := range pool.Taints {
		errs = append(errs, nodeTaint(taint, path.Child("taints").Index(i))...)
	}

	if pool.Volume != nil {
		errs = append(errs, quantity(pool.Volume.Size, path.Child("volume", "size"))...)
	}
	volumes := sets.New[string]()
	for i, volume := range pool.DataVolumes {
		path := path.Child("dataVolumes").Index(i)
		errs = append(errs, required(volume.Name, path.Child("name"))...)
		errs = append(errs, quantity(volume.Size, path.Child("size"))...)
		if volumes.Has(volume.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), volume.Name))
		}
		volumes.Insert(volume.Name)
	}
	if name := pool.KubeletDataVolumeName; name != nil && !volumes.Has(*name) {
		errs = append(errs, field.NotFound(path.Child("kubeletDataVolumeName"), *name))
	}

	for i, zone := range pool.Zones {
		errs = append(errs, required(zone, path.Child("zones").Index(i))...)
		if slices.Contains(pool.Zones[:i], zone) {
			errs = append(errs, field.Duplicate(path.Child("zones").Index(i), zone))
		}
	}
	if pool.NodeTemplate != nil {
		errs = append(errs, resources(pool.NodeTemplate.Capacity, path.Child("nodeTemplate", "capacity"))...)
		errs = append(errs, resources(pool.NodeTemplate.VirtualCapacity, path.Child("nodeTemplate", "virtualCapacity"))...)
	}
	if pool.ClusterAutoscaler != nil {
		errs = append(errs, clusterAutoscaler(pool.ClusterAutoscaler, path.Child("clusterAutoscaler"))...)
	}
	if pool.UpdateStrategy != nil {
		errs = append(errs, supported(*pool.UpdateStrategy, path.Child("updateStrategy"),
			corev1beta1.AutoRollingUpdate, corev1beta1.AutoInPlaceUpdate, corev1beta1.ManualInPlaceUpdate)...)
	}
	return errs
}

// poolSize checks the number of machines, also during an update.
func poolSize(pool *extensionsv1alpha1.WorkerPool, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateNonnegativeField(int64(pool.Minimum), path.Child("minimum"))
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(pool.Maximum), path.Child("maximum"))...)
	if pool.Minimum > pool.Maximum {
		errs = append(errs, field.Invalid(path.Child("minimum"), pool.Minimum, "must not be higher than maximum"))
	}
	surge, surgeErrs := numberOrPercentage(pool.MaxSurge, path.Child("maxSurge"))
	unavailable, unavailableErrs := numberOrPercentage(pool.MaxUnavailable, path.Child("maxUnavailable"))
	errs = append(append(errs, surgeErrs...), unavailableErrs...)
	if len(surgeErrs)+len(unavailableErrs) == 0 && surge == 0 && unavailable == 0 {
		// If both are zero, no machine could be replaced.
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), pool.MaxUnavailable.String(), "must not be 0 when maxSurge is 0"))
	}
	if pool.MaxUnavailable.Type == intstr.String && unavailable > 100 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), pool.MaxUnavailable.String(), "must be at most 100%"))
	}
	return errs
}

func numberOrPercentage(value intstr.IntOrString, path *field.Path) (int, field.ErrorList) {
	if value.Type == intstr.Int {
		return value.IntValue(), apivalidation.ValidateNonnegativeField(int64(value.IntVal), path)
	}
	if errs := invalid(path, value.StrVal, validation.IsValidPercent(value.StrVal)); len(errs) > 0 {
		return 0, errs
	}
	percent, err := strconv.Atoi(value.StrVal[:len(value.StrVal)-1])
	if err != nil {
		return 0, field.ErrorList{field.Invalid(path, value.StrVal, "must be a percentage")}
	}
	return percent, nil
}

func nodeTaint(taint corev1.Taint, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabelName(taint.Key, path.Child("key"))
	errs = append(errs, invalid(path.Child("value"), taint.Value, validation.IsValidLabelValue(taint.Value))...)
	return append(errs, supported(taint.Effect, path.Child("effect"),
		corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
}

func quantity(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	parsed, err := resource.ParseQuantity(value)
	if err != nil || parsed.Sign() <= 0 {
		return field.ErrorList{field.Invalid(path, value, "must be a quantity above zero, such as 50Gi")}
	}
	return nil
}

func resources(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if value := list[name]; value.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), value.String(), "must not be negative"))
		}
	}
	return errs
}

func clusterAutoscaler(options *extensionsv1alpha1.ClusterAutoscalerOptions, path *field.Path) field.ErrorList {
	errs := threshold(options.ScaleDownUtilizationThreshold, path.Child("scaleDownUtilizationThreshold"))
	return append(errs, threshold(options.ScaleDownGPUUtilizationThreshold, path.Child("scaleDownGpuUtilizationThreshold"))...)
}

func threshold(value *string, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if number, err := strconv.ParseFloat(*value, 64); err != nil || !(number >= 0 && number <= 1) { // false for NaN
		return field.ErrorList{field.Invalid(path, *value, "must be a number between 0 and 1")}
	}
	return nil
}
