package druid

import (
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

var (
	metadataPath = field.NewPath("metadata")
	specPath     = field.NewPath("spec")
)

// ValidateEtcd checks a new Etcd.
func ValidateEtcd(etcd *druidv1alpha1.Etcd) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&etcd.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	spec := &etcd.Spec
	switch {
	case spec.Replicas < 0:
		errs = append(errs, field.Invalid(specPath.Child("replicas"), spec.Replicas, "must not be negative"))
	case spec.Replicas > 0 && spec.Replicas%2 == 0 && len(spec.ExternallyManagedMemberAddresses) == 0:
		errs = append(errs, field.Invalid(specPath.Child("replicas"), spec.Replicas, "must be odd: one more member does not survive more failures"))
	}
	if selector := spec.Selector; selector != nil {
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(specPath.Child("selector"), selector, err.Error()))
		case !parsed.Matches(labels.Set(spec.Labels)):
			errs = append(errs, field.Invalid(specPath.Child("selector"), selector, "must match spec.labels"))
		}
	}
	errs = append(errs, etcdConfig(&spec.Etcd, specPath.Child("etcd"))...)
	errs = append(errs, backup(&spec.Backup, etcd, specPath.Child("backup"))...)
	if capacity := spec.StorageCapacity; capacity != nil && capacity.Sign() <= 0 {
		errs = append(errs, field.Invalid(specPath.Child("storageCapacity"), capacity.String(), "must be above zero"))
	}
	addresses := sets.New[string]()
	for i, address := range spec.ExternallyManagedMemberAddresses {
		path := specPath.Child("externallyManagedMemberAddresses").Index(i)
		if address == "" {
			errs = append(errs, field.Required(path, "must be set"))
		}
		if addresses.Has(address) {
			errs = append(errs, field.Duplicate(path, address))
		}
		addresses.Insert(address)
	}
	return errs
}

// ValidateEtcdUpdate checks a changed Etcd.
func ValidateEtcdUpdate(etcd, old *druidv1alpha1.Etcd) field.ErrorList {
	if etcd.DeletionTimestamp != nil {
		if apiequality.Semantic.DeepEqual(etcd.Spec, old.Spec) {
			return nil
		}
		return field.ErrorList{field.Forbidden(specPath, "cannot be changed while the object is being deleted")}
	}
	errs := apivalidation.ValidateObjectMetaUpdate(&etcd.ObjectMeta, &old.ObjectMeta, metadataPath)
	spec, oldSpec := &etcd.Spec, &old.Spec
	errs = append(errs, apivalidation.ValidateImmutableField(spec.MemberNamePrefix, oldSpec.MemberNamePrefix, specPath.Child("memberNamePrefix"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(spec.StorageClass, oldSpec.StorageClass, specPath.Child("storageClass"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(spec.VolumeClaimTemplate, oldSpec.VolumeClaimTemplate, specPath.Child("volumeClaimTemplate"))...)
	if spec.Replicas != 0 && spec.Replicas < oldSpec.Replicas {
		errs = append(errs, field.Invalid(specPath.Child("replicas"), spec.Replicas, fmt.Sprintf("can only be increased beyond %d, or set to 0", oldSpec.Replicas)))
	}
	if bootstrap := spec.Etcd.BootstrapWithExistingCluster; bootstrap != nil && !apiequality.Semantic.DeepEqual(bootstrap, oldSpec.Etcd.BootstrapWithExistingCluster) {
		errs = append(errs, field.Forbidden(specPath.Child("etcd", "bootstrapWithExistingCluster"), "can only be set when the Etcd is created, and removed later"))
	}
	if store, oldStore := spec.Backup.Store, oldSpec.Backup.Store; store != nil && oldStore != nil {
		// Another prefix would start a new history, and a restore would find an old one.
		errs = append(errs, apivalidation.ValidateImmutableField(store.Prefix, oldStore.Prefix, specPath.Child("backup", "store", "prefix"))...)
	}
	return append(errs, ValidateEtcd(etcd)...)
}

func etcdConfig(config *druidv1alpha1.EtcdConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	ports := map[int32]string{}
	for _, port := range []struct {
		name  string
		value *int32
	}{{"clientPort", config.ClientPort}, {"serverPort", config.ServerPort}, {"wrapperPort", config.WrapperPort}} {
		if port.value == nil {
			continue
		}
		for _, message := range validation.IsValidPortNum(int(*port.value)) {
			errs = append(errs, field.Invalid(path.Child(port.name), *port.value, message))
		}
		if other, ok := ports[*port.value]; ok {
			errs = append(errs, field.Invalid(path.Child(port.name), *port.value, "must differ from "+other))
		}
		ports[*port.value] = port.name
	}
	if config.Quota != nil && config.Quota.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("quota"), config.Quota.String(), "must be above zero"))
	}
	if config.ClientURLTLS != nil {
		errs = append(errs, tls(config.ClientURLTLS, path.Child("clientUrlTls"))...)
	}
	if config.PeerURLTLS != nil {
		errs = append(errs, tls(&config.PeerURLTLS.TLSConfig, path.Child("peerUrlTls"))...)
	}
	return errs
}

func tls(config *druidv1alpha1.TLSConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if config.TLSCASecretRef.Name == "" {
		errs = append(errs, field.Required(path.Child("tlsCASecretRef", "name"), "must be set"))
	}
	if config.ServerTLSSecretRef.Name == "" {
		errs = append(errs, field.Required(path.Child("serverTLSSecretRef", "name"), "must be set"))
	}
	return errs
}

func backup(config *druidv1alpha1.BackupSpec, etcd *druidv1alpha1.Etcd, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if config.Port != nil {
		for _, message := range validation.IsValidPortNum(int(*config.Port)) {
			errs = append(errs, field.Invalid(path.Child("port"), *config.Port, message))
		}
	}
	if config.TLS != nil {
		errs = append(errs, tls(config.TLS, path.Child("tls"))...)
	}
	if delta, collect := config.DeltaSnapshotPeriod, config.GarbageCollectionPeriod; delta != nil && collect != nil && delta.Duration >= collect.Duration {
		errs = append(errs, field.Invalid(path.Child("garbageCollectionPeriod"), collect.Duration.String(), "must be longer than deltaSnapshotPeriod"))
	}
	if maximum := config.MaxBackupsLimitBasedGC; maximum != nil && *maximum <= 0 {
		errs = append(errs, field.Invalid(path.Child("maxBackupsLimitBasedGC"), *maximum, "must be at least 1"))
	}
	if config.Store == nil {
		return errs
	}
	errs = append(errs, store(config.Store, path.Child("store"))...)
	// Two Etcds with the same prefix would restore each other's data.
	if prefix := config.Store.Prefix; prefix != "" && !strings.Contains(prefix, etcd.Name) {
		errs = append(errs, field.Invalid(path.Child("store", "prefix"), prefix, fmt.Sprintf("must contain the name %q, so that no other Etcd uses it", etcd.Name)))
	}
	return errs
}

func store(config *druidv1alpha1.StoreSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if config.Prefix == "" {
		errs = append(errs, field.Required(path.Child("prefix"), "must be set"))
	}
	if config.Provider != nil && *config.Provider == "" {
		errs = append(errs, field.Required(path.Child("provider"), "must not be empty if it is set"))
	}
	if config.SecretRef != nil && config.SecretRef.Name == "" {
		errs = append(errs, field.Required(path.Child("secretRef", "name"), "must be set"))
	}
	return errs
}
