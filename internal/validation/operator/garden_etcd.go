package operator

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

func etcds(etcd *operatorv1alpha1.ETCD, runtimeRegion *string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if main := etcd.Main; main != nil {
		path := path.Child("main")
		errs = append(errs, storage(main.Storage, path.Child("storage"))...)
		errs = append(errs, autoscaling(main.Autoscaling, path.Child("autoscaling"))...)
		if main.Backup != nil {
			errs = append(errs, backup(main.Backup, runtimeRegion, path.Child("backup"))...)
		}
	}
	if events := etcd.Events; events != nil {
		path := path.Child("events")
		errs = append(errs, storage(events.Storage, path.Child("storage"))...)
		errs = append(errs, autoscaling(events.Autoscaling, path.Child("autoscaling"))...)
	}
	return errs
}

func storage(storage *operatorv1alpha1.Storage, path *field.Path) field.ErrorList {
	if storage == nil {
		return nil
	}
	var errs field.ErrorList
	if storage.Capacity != nil && storage.Capacity.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("capacity"), storage.Capacity.String(), "must be above zero"))
	}
	if storage.ClassName != nil {
		errs = append(errs, required(*storage.ClassName, path.Child("className"))...)
	}
	return errs
}

func autoscaling(autoscaling *corev1beta1.ControlPlaneAutoscaling, path *field.Path) field.ErrorList {
	if autoscaling == nil {
		return nil
	}
	path = path.Child("minAllowed")
	errs := quantities(autoscaling.MinAllowed, path)
	for name := range autoscaling.MinAllowed {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			errs = append(errs, field.NotSupported(path.Key(string(name)), name, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}))
		}
	}
	return errs
}

func backup(backup *operatorv1alpha1.Backup, runtimeRegion *string, path *field.Path) field.ErrorList {
	errs := required(backup.Provider, path.Child("provider"))
	errs = append(errs, required(backup.SecretRef.Name, path.Child("secretRef", "name"))...)
	if backup.BucketName != nil {
		errs = append(errs, required(*backup.BucketName, path.Child("bucketName"))...)
		if backup.ProviderConfig != nil {
			errs = append(errs, field.Forbidden(path.Child("providerConfig"), "must not be set with bucketName: it is for creating a bucket"))
		}
		return errs
	}
	if region := first(backup.Region, runtimeRegion); region == nil || *region == "" {
		errs = append(errs, field.Required(path.Child("region"), "must be set to create a bucket, unless spec.runtimeCluster.provider.region is"))
	}
	return errs
}

func first(a, b *string) *string {
	if a != nil {
		return a
	}
	return b
}

// backupUpdate refuses to have no backups any more, or another bucket for them, as nothing copies the backups from the old one.
func backupUpdate(etcd, oldETCD *operatorv1alpha1.ETCD, path *field.Path) field.ErrorList {
	backup, old := backupOf(etcd), backupOf(oldETCD)
	switch {
	case old == nil:
		return nil
	case backup == nil:
		return field.ErrorList{field.Forbidden(path, "cannot be removed: etcd could not be restored any more")}
	}
	errs := immutable(backup.Provider, old.Provider, path.Child("provider"))
	errs = append(errs, immutable(backup.BucketName, old.BucketName, path.Child("bucketName"))...)
	return append(errs, immutable(backup.Region, old.Region, path.Child("region"))...)
}

func backupOf(etcd *operatorv1alpha1.ETCD) *operatorv1alpha1.Backup {
	if etcd == nil || etcd.Main == nil {
		return nil
	}
	return etcd.Main.Backup
}
