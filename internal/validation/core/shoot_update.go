package core

import (
	"reflect"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ValidateShootUpdate checks a changed Shoot, after defaulting and mutating admission. The spec of a Shoot that is being deleted cannot
// change: the deletion needs the credentials, networks and pools that the resources were created with.
func ValidateShootUpdate(shoot, old *corev1beta1.Shoot, opts Options) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&shoot.ObjectMeta, &old.ObjectMeta, metadataPath)
	if shoot.DeletionTimestamp == nil {
		errs = append(errs, shootSpecUpdate(shoot, old, field.NewPath("spec"))...)
		errs = append(errs, pendingUpdates(shoot, old, field.NewPath("spec", "provider", "workers"))...)
		errs = append(errs, inPlaceDNSUpdate(&shoot.Spec, &old.Spec, field.NewPath("spec"))...)
	} else if frozen := unchanged(reflect.ValueOf(shoot.Spec), reflect.ValueOf(old.Spec), field.NewPath("spec")); len(frozen) > 0 {
		return append(errs, frozen...)
	}
	return append(errs, validateShoot(shoot, old, opts)...)
}

// unchanged refuses each change between two values of the same API type, at the path of the field that differs.
func unchanged(value, old reflect.Value, path *field.Path) field.ErrorList {
	if equal(value.Interface(), old.Interface()) {
		return nil
	}
	var errs field.ErrorList
	switch {
	case value.Kind() == reflect.Pointer && !value.IsNil() && !old.IsNil():
		return unchanged(value.Elem(), old.Elem(), path)
	case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct && value.Len() == old.Len():
		for i := range value.Len() {
			errs = append(errs, unchanged(value.Index(i), old.Index(i), path.Index(i))...)
		}
	case value.Kind() == reflect.Struct:
		for i := range value.NumField() {
			if f := value.Type().Field(i); f.IsExported() {
				child := path
				if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" { // embedded, or the bytes of a RawExtension
					child = path.Child(name)
				}
				errs = append(errs, unchanged(value.Field(i), old.Field(i), child)...)
			}
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return field.ErrorList{field.Forbidden(path, "cannot be changed while the shoot is being deleted")}
}

// ValidateShootTemplateUpdate checks a changed template: replicas follow it, so what they cannot change it cannot either.
func ValidateShootTemplateUpdate(template, old *corev1beta1.ShootTemplate, path *field.Path) field.ErrorList {
	path = path.Child("spec")
	errs := shootSpecUpdate(&corev1beta1.Shoot{Spec: template.Spec}, &corev1beta1.Shoot{Spec: old.Spec}, path)
	if nodes(&old.Spec) != "" && nodes(&template.Spec) == "" {
		errs = append(errs, field.Invalid(path.Child("networking", "nodes"), "", "cannot be removed"))
	}
	return errs
}

func nodes(spec *corev1beta1.ShootSpec) string {
	if spec.Networking == nil {
		return ""
	}
	return ptr.Deref(spec.Networking.Nodes, "")
}

// shootSpecUpdate checks which changes of the spec are possible.
func shootSpecUpdate(shoot, old *corev1beta1.Shoot, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec, before := &shoot.Spec, &old.Spec

	errs = append(errs, immutable(spec.Region, before.Region, path.Child("region"))...)
	errs = append(errs, immutable(spec.Provider.Type, before.Provider.Type, path.Child("provider", "type"))...)
	if before.ExposureClassName != nil || before.SeedName != nil { // the scheduling of a class is for shoots without a seed
		errs = append(errs, immutable(spec.ExposureClassName, before.ExposureClassName, path.Child("exposureClassName"))...)
	}
	if !equal(spec.CloudProfileName, before.CloudProfileName) { //nolint:staticcheck // still there
		errs = append(errs, cloudProfileName(spec, path)...)
	}
	if before.SchedulerName != nil {
		errs = append(errs, immutable(spec.SchedulerName, before.SchedulerName, path.Child("schedulerName"))...)
	}
	errs = append(errs, credentialsUpdate(spec, before, path)...)
	errs = append(errs, dnsUpdate(spec.DNS, before.DNS, before.SeedName != nil, path.Child("dns"))...)
	errs = append(errs, networkingUpdate(spec.Networking, before.Networking, path.Child("networking"))...)
	errs = append(errs, versionUpdate(spec.Kubernetes.Version, before.Kubernetes.Version, path.Child("kubernetes", "version"))...)
	errs = append(errs, workersUpdate(spec, before, path.Child("provider", "workers"))...)
	errs = append(errs, controlPlaneUpdate(shoot, old, path.Child("controlPlane"))...)
	errs = append(errs, encryptionUpdate(shoot, old, path)...)
	errs = append(errs, nodeCIDRUpdate(spec, before, path.Child("kubernetes", "kubeControllerManager"))...)
	return errs
}

// credentialsUpdate allows other credentials, and to replace a SecretBinding by a CredentialsBinding.
func credentialsUpdate(spec, before *corev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	now, then := spec.SecretBindingName, before.SecretBindingName //nolint:staticcheck // still there
	replaced := then != nil && now == nil && spec.CredentialsBindingName != nil
	if !replaced && !equal(now, then) {
		errs = append(errs, field.Invalid(path.Child("secretBindingName"), now, "cannot be changed"))
	}
	if before.CredentialsBindingName != nil && ptr.Deref(spec.CredentialsBindingName, "") == "" {
		errs = append(errs, field.Forbidden(path.Child("credentialsBindingName"), "cannot be removed"))
	}
	return errs
}

func dnsUpdate(dns, before *corev1beta1.DNS, onSeed bool, path *field.Path) field.ErrorList {
	if before == nil {
		return nil
	}
	var errs field.ErrorList
	if dns == nil {
		dns = &corev1beta1.DNS{}
	}
	if before.Domain != nil {
		errs = append(errs, immutable(dns.Domain, before.Domain, path.Child("domain"))...)
	}
	now, then := primaryProvider(dns), primaryProvider(before)
	if onSeed && then != nil && (now == nil || !equal(now.Type, then.Type)) {
		errs = append(errs, field.Forbidden(path.Child("providers"), "the primary provider cannot be removed, nor its type changed"))
	}
	return errs
}

// primaryProvider returns the provider that manages the domain: the one that is marked, or else the first one.
func primaryProvider(dns *corev1beta1.DNS) *corev1beta1.DNSProvider {
	//nolint:staticcheck // providers other than the primary one are old, but still there
	providers := dns.Providers
	if i := slices.IndexFunc(providers, func(p corev1beta1.DNSProvider) bool { return ptr.Deref(p.Primary, false) }); i >= 0 { //nolint:staticcheck // as above
		return &providers[i]
	}
	if len(providers) > 0 {
		return &providers[0]
	}
	return nil
}

func networkingUpdate(networking, before *corev1beta1.Networking, path *field.Path) field.ErrorList {
	if before == nil {
		return nil
	}
	if networking == nil {
		networking = &corev1beta1.Networking{}
	}
	var errs field.ErrorList
	for _, f := range []struct {
		name      string
		now, then *string
	}{{"type", networking.Type, before.Type}, {"pods", networking.Pods, before.Pods}, {"services", networking.Services, before.Services}} {
		if f.then != nil {
			errs = append(errs, immutable(f.now, f.then, path.Child(f.name))...)
		}
	}
	// A second family can be added after the first one.
	now, then := networking.IPFamilies, before.IPFamilies
	if len(then) > 0 && !slices.Equal(now, then) && (len(then) != 1 || len(now) != 2 || now[0] != then[0] || now[1] == then[0]) {
		errs = append(errs, field.Forbidden(path.Child("ipFamilies"), "a second IP family can be added, nothing else be changed"))
	}
	return errs
}

// versionUpdate allows updates by one minor version at a time.
func versionUpdate(version, before string, path *field.Path) field.ErrorList {
	if before == "" || version == before {
		return nil
	}
	if version == "" {
		return field.ErrorList{field.Invalid(path, version, "cannot be removed")}
	}
	now, then := parseVersion(version), parseVersion(before)
	if now.Version == nil || then.Version == nil {
		return nil // not offered by the profile, which is checked in admission
	}
	switch {
	case now.LessThan(then.Version):
		return field.ErrorList{field.Forbidden(path, "cannot be lowered")}
	case now.Major() != then.Major(), now.Minor() > then.Minor()+1:
		return field.ErrorList{field.Forbidden(path, "minor versions cannot be skipped")}
	}
	return nil
}

func workersUpdate(spec, before *corev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Workerless() != before.Workerless() {
		errs = append(errs, field.Forbidden(path, "a cluster cannot get its first workers later, nor lose the last ones"))
	}
	now, then := controlPlanePool(spec), controlPlanePool(before)
	if (now == nil) != (then == nil) || now != nil && now.Name != then.Name {
		errs = append(errs, field.Forbidden(path, "a cluster cannot become self-hosted or stop being self-hosted, and its control plane stays in its pool"))
	}
	for i, worker := range spec.Provider.Workers {
		j := slices.IndexFunc(before.Provider.Workers, func(w corev1beta1.Worker) bool { return w.Name == worker.Name })
		if j < 0 {
			continue
		}
		errs = append(errs, poolUpdate(spec, before, &worker, &before.Provider.Workers[j], path.Index(i))...)
	}
	return errs
}

func poolUpdate(spec, beforeSpec *corev1beta1.ShootSpec, worker, before *corev1beta1.Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	// A pool whose machines are replaced may skip minor versions, but kubelets cannot go back.
	now, then := parseVersion(poolVersion(worker, spec)), parseVersion(poolVersion(before, beforeSpec))
	if now.Version != nil && then.Version != nil && now.LessThan(then.Version) {
		errs = append(errs, field.Forbidden(path.Child("kubernetes", "version"), "cannot be lowered"))
	}
	if before.UpdateStrategy != nil && worker.UpdateStrategy.InPlace() != before.UpdateStrategy.InPlace() {
		errs = append(errs, field.Invalid(path.Child("updateStrategy"), worker.UpdateStrategy, "cannot be changed between rolling and in-place updates"))
	}
	return append(errs, inPlacePoolUpdate(spec, beforeSpec, worker, before, path)...)
}

func poolVersion(worker *corev1beta1.Worker, spec *corev1beta1.ShootSpec) string {
	if worker.Kubernetes != nil && ptr.Deref(worker.Kubernetes.Version, "") != "" {
		return *worker.Kubernetes.Version
	}
	return spec.Kubernetes.Version
}

func controlPlaneUpdate(shoot, old *corev1beta1.Shoot, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	tolerance := func(spec *corev1beta1.ShootSpec) corev1beta1.FailureToleranceType {
		if spec.ControlPlane == nil || spec.ControlPlane.HighAvailability == nil {
			return ""
		}
		return spec.ControlPlane.HighAvailability.FailureTolerance.Type
	}
	typePath := path.Child("highAvailability", "failureTolerance", "type")
	now, then := tolerance(&shoot.Spec), tolerance(&old.Spec)
	switch {
	case now == then:
	case now == "":
		errs = append(errs, field.Invalid(typePath, now, "cannot be removed, as an etcd cluster of three members cannot become one of a single member"))
	// A hibernated cluster has no control plane that could become highly available, and no members of etcd that could move to other zones.
	case shoot.Status.Hibernated || shoot.HibernationWanted():
		errs = append(errs, field.Forbidden(typePath, "cannot be changed while the cluster is hibernated"))
	}
	if zones, before := controlPlaneZones(&shoot.Spec), controlPlaneZones(&old.Spec); !equal(zones, before) && (now == then || !moreOrLess(zones, before)) {
		errs = append(errs, field.Forbidden(path.Child("zones"), "cannot be changed, except that zones are added or removed with another failure tolerance type"))
	}
	return errs
}

func controlPlaneZones(spec *corev1beta1.ShootSpec) []string {
	if spec.ControlPlane == nil {
		return nil
	}
	return spec.ControlPlane.Zones
}

// moreOrLess reports whether one of two lists of zones has all that the other has. Neither is empty.
func moreOrLess(zones, before []string) bool {
	shorter, longer := zones, before
	if len(shorter) > len(longer) {
		shorter, longer = longer, shorter
	}
	return len(shorter) > 0 && !slices.ContainsFunc(shorter, func(zone string) bool { return !slices.Contains(longer, zone) })
}

// encryptionUpdate refuses changes of the encryption configuration while another one is in progress, or while the cluster is hibernated.
func encryptionUpdate(shoot, old *corev1beta1.Shoot, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	config := path.Child("kubernetes", "kubeAPIServer", "encryptionConfig")
	changed := !sameSet(encryptedResources(&shoot.Spec), encryptedResources(&old.Spec))
	providerChanged := encryptionProvider(&shoot.Spec) != encryptionProvider(&old.Spec)

	if providerChanged {
		errs = append(errs, field.Forbidden(config.Child("provider", "type"), "cannot be changed"))
	}
	if !changed {
		if !old.HibernationWanted() && shoot.HibernationWanted() && encryptionBusy(old) {
			errs = append(errs, field.Forbidden(path.Child("hibernation", "enabled"), "the encryption configuration or key is being changed"))
		}
		return errs
	}
	created := old.Status.Credentials != nil && old.Status.Credentials.EncryptionAtRest != nil
	if !created || encryptionBusy(old) || shoot.HibernationWanted() || old.Status.Hibernated {
		errs = append(errs, field.Forbidden(config.Child("resources"), "cannot be changed before the cluster is created, while it is hibernated, or while an earlier change is in progress"))
	}
	return errs
}

func encryptionProvider(spec *corev1beta1.ShootSpec) corev1beta1.EncryptionProviderType {
	if spec.Kubernetes.KubeAPIServer == nil || spec.Kubernetes.KubeAPIServer.EncryptionConfig == nil {
		return corev1beta1.EncryptionProviderTypeAESCBC
	}
	if provider := spec.Kubernetes.KubeAPIServer.EncryptionConfig.Provider.Type; provider != nil {
		return *provider
	}
	return corev1beta1.EncryptionProviderTypeAESCBC
}

// encryptionBusy reports whether data in etcd is being encrypted again.
func encryptionBusy(shoot *corev1beta1.Shoot) bool {
	if encryptionChanges(shoot) {
		return true
	}
	if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil || shoot.Status.Credentials.Rotation.ETCDEncryptionKey == nil {
		return false
	}
	phase := shoot.Status.Credentials.Rotation.ETCDEncryptionKey.Phase
	return phase != "" && phase != corev1beta1.RotationCompleted
}

// nodeCIDRUpdate refuses to change the size of the networks of nodes.
func nodeCIDRUpdate(spec, before *corev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	if before.Kubernetes.KubeControllerManager == nil || spec.Kubernetes.KubeControllerManager == nil {
		return nil
	}
	var errs field.ErrorList
	now, then := spec.Kubernetes.KubeControllerManager, before.Kubernetes.KubeControllerManager
	if then.NodeCIDRMaskSize != nil {
		errs = append(errs, immutable(now.NodeCIDRMaskSize, then.NodeCIDRMaskSize, path.Child("nodeCIDRMaskSize"))...)
	}
	if then.NodeCIDRMaskSizeIPv6 != nil {
		errs = append(errs, immutable(now.NodeCIDRMaskSizeIPv6, then.NodeCIDRMaskSizeIPv6, path.Child("nodeCIDRMaskSizeIPv6"))...)
	}
	return errs
}
