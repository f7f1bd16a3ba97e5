package core

import (
	"slices"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

var shootPurposes = []corev1beta1.ShootPurpose{
	corev1beta1.ShootPurposeEvaluation, corev1beta1.ShootPurposeTesting, corev1beta1.ShootPurposeDevelopment, corev1beta1.ShootPurposeProduction,
}

// ValidateShoot checks a new Shoot, after defaulting and mutating admission.
func ValidateShoot(shoot *corev1beta1.Shoot, opts Options) field.ErrorList {
	errs := validateShoot(shoot, nil, opts)
	errs = append(errs, cloudProfileName(&shoot.Spec, field.NewPath("spec"))...)
	for i, finalizer := range shoot.Finalizers {
		if finalizer == constants.FinalizerGardenerName || finalizer == constants.FinalizerReferenceProtection {
			errs = append(errs, field.Forbidden(metadataPath.Child("finalizers").Index(i), "cannot be set by users"))
		}
	}
	return errs
}

func validateShoot(shoot, old *corev1beta1.Shoot, opts Options) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&shoot.ObjectMeta, true, func(name string, prefix bool) []string {
		if strings.Contains(name, "--") {
			return []string{"must not contain two hyphens in a row, as they separate names in technical IDs"}
		}
		return apivalidation.NameIsDNSLabel(name, prefix)
	}, metadataPath)
	errs = append(errs, shootOperations(shoot, metadataPath.Child("annotations"))...)
	errs = append(errs, forceDeletion(shoot, old, metadataPath.Child("annotations"))...)
	// What a former version has accepted stays until it is changed: a Shoot with a spec that is refused now can be deleted, for example.
	if old == nil || !equal(shoot.Spec, old.Spec) {
		errs = append(errs, ShootSpec(&shoot.Spec, shoot.Namespace, opts, field.NewPath("spec"))...)
	}
	before := &corev1beta1.ShootSpec{}
	if old != nil {
		before = &old.Spec
	}
	errs = append(errs, poolsAdded(shoot.Spec.Provider.Workers, before.Provider.Workers, field.NewPath("spec", "provider", "workers"))...)
	errs = append(errs, schedulesAdded(shoot.Spec.Hibernation, before.Hibernation, field.NewPath("spec", "hibernation", "schedules"))...)
	errs = append(errs, kubeletsStart(&shoot.Spec, before, field.NewPath("spec"))...)
	for i, worker := range shoot.Spec.Provider.Workers {
		if worker.Machine.Image == nil {
			errs = append(errs, field.Required(field.NewPath("spec", "provider", "workers").Index(i).Child("machine", "image"), "must be set"))
		}
	}
	return append(errs, selfHosted(&shoot.Spec, shoot.Namespace, field.NewPath("spec"))...)
}

// ValidateShootTemplate checks the template of a Shoot in the namespace "garden".
func ValidateShootTemplate(template *corev1beta1.ShootTemplate, opts Options, path *field.Path) field.ErrorList {
	path = path.Child("spec")
	// A gate may be off when replicas are created; defaults are set then, too.
	opts.InPlaceNodeUpdates = true
	spec := template.Spec.DeepCopy()
	if spec.Maintenance != nil && spec.Maintenance.AutoUpdate == nil {
		spec.Maintenance.AutoUpdate = &corev1beta1.MaintenanceAutoUpdate{}
	}
	for i := range spec.Provider.Workers {
		if image := spec.Provider.Workers[i].Machine.Image; image != nil && image.Version == nil {
			image.Version = new("0.0.0")
		}
	}
	errs := ShootSpec(spec, "", opts, path)
	errs = append(errs, cloudProfileName(&template.Spec, path)...)
	if profile := template.Spec.CloudProfile; profile != nil {
		errs = append(errs, supported(profile.Kind, []string{
			constants.CloudProfileReferenceKindCloudProfile, constants.CloudProfileReferenceKindNamespacedCloudProfile,
		}, path.Child("cloudProfile", "kind"))...)
	}
	return append(errs, selfHosted(&template.Spec, "", path)...)
}

// ForceDeletionConfirmed reports whether the owner of a Shoot has confirmed that it is deleted by force.
func ForceDeletionConfirmed(shoot *corev1beta1.Shoot) bool {
	force, err := strconv.ParseBool(shoot.Annotations[constants.ConfirmationForceDeletion])
	return err == nil && force
}

// forceDeletion refuses the confirmation unless the Shoot is in deletion and the codes of its errors allow a forced deletion. Once
// confirmed, it cannot be revoked: resources that were left are not deleted later.
func forceDeletion(shoot, old *corev1beta1.Shoot, path *field.Path) field.ErrorList {
	path = path.Key(constants.ConfirmationForceDeletion)
	switch before, now := old != nil && ForceDeletionConfirmed(old), ForceDeletionConfirmed(shoot); {
	case before && !now:
		return field.ErrorList{field.Forbidden(path, "cannot be taken back")}
	case before == now:
		return nil
	}
	if shoot.DeletionTimestamp == nil {
		return field.ErrorList{field.Forbidden(path, "the shoot must be in deletion")}
	}
	for _, lastError := range shoot.Status.LastErrors {
		for _, code := range lastError.Codes {
			switch code {
			case corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraDependencies,
				corev1beta1.ErrorCleanupClusterResources, corev1beta1.ErrorConfigurationProblem:
				return nil
			}
		}
	}
	return field.ErrorList{field.Forbidden(path, "no error of the deletion allows it")}
}

// ShootSpec checks the spec of a shoot in a namespace; that of a template has none.
func ShootSpec(spec *corev1beta1.ShootSpec, namespace string, opts Options, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	version := parseVersion(spec.Kubernetes.Version)
	workerless := spec.Workerless()

	errs = append(errs, shootReferences(spec, version, workerless, path)...)
	if spec.Region == "" {
		errs = append(errs, field.Required(path.Child("region"), "must be set"))
	}
	errs = append(errs, shootProvider(spec, version, opts, path)...)
	errs = append(errs, shootKubernetes(spec, version, path.Child("kubernetes"))...)
	errs = append(errs, shootNetworking(spec.Networking, workerless, path.Child("networking"))...)
	errs = append(errs, shootMaintenance(spec.Maintenance, path.Child("maintenance"))...)
	errs = append(errs, hibernation(spec.Hibernation, path.Child("hibernation"))...)
	errs = append(errs, shootDNS(spec.DNS, version, path.Child("dns"))...)
	errs = append(errs, monitoring(spec.Monitoring, path.Child("monitoring"))...)
	errs = append(errs, addons(spec, version, opts, path.Child("addons"))...)
	errs = append(errs, systemComponents(spec.SystemComponents, path.Child("systemComponents"))...)
	errs = append(errs, controlPlane(spec.ControlPlane, path.Child("controlPlane"))...)
	errs = append(errs, extensions(spec.Extensions, path.Child("extensions"))...)
	errs = append(errs, namedResources(spec.Resources, path.Child("resources"))...)
	errs = append(errs, tolerations(spec.Tolerations, path.Child("tolerations"))...)
	if spec.SeedSelector != nil {
		errs = append(errs, labelSelector(&spec.SeedSelector.LabelSelector, path.Child("seedSelector"))...)
	}
	if spec.Purpose != nil {
		purposes := shootPurposes
		if namespace == constants.GardenNamespace || namespace == "" {
			purposes = append(slices.Clone(purposes), corev1beta1.ShootPurposeInfrastructure)
		}
		errs = append(errs, supported(*spec.Purpose, purposes, path.Child("purpose"))...)
	}
	if spec.ExposureClassName != nil {
		errs = append(errs, dnsSubdomain(*spec.ExposureClassName, path.Child("exposureClassName"))...)
	}
	if spec.SeedName != nil {
		errs = append(errs, dnsSubdomain(*spec.SeedName, path.Child("seedName"))...)
	}
	if spec.SchedulerName != nil {
		errs = append(errs, dnsSubdomain(*spec.SchedulerName, path.Child("schedulerName"))...)
	}
	if workerless {
		errs = append(errs, forbiddenWithoutWorkers(spec, path)...)
	}
	return errs
}

// shootReferences checks the references of the shoot to its profile and its credentials.
func shootReferences(spec *corev1beta1.ShootSpec, version kubeVersion, workerless bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	//nolint:staticcheck // the old names of profile and credentials are in use up to Kubernetes 1.33
	profileName, secretBinding := spec.CloudProfileName, spec.SecretBindingName
	if spec.CloudProfile == nil && ptr.Deref(profileName, "") == "" {
		errs = append(errs, field.Required(path.Child("cloudProfile", "name"), "must be set"))
	}
	if secretBinding != nil && version.atLeast(1, 34) {
		errs = append(errs, field.Forbidden(path.Child("secretBindingName"), "is not possible from Kubernetes 1.34; use credentialsBindingName"))
	}
	if workerless {
		return errs
	}
	hasSecretBinding, hasCredentialsBinding := ptr.Deref(secretBinding, "") != "", ptr.Deref(spec.CredentialsBindingName, "") != ""
	switch {
	case !hasSecretBinding && !hasCredentialsBinding:
		errs = append(errs, field.Required(path.Child("secretBindingName"), "secretBindingName or credentialsBindingName must be set"))
	case hasSecretBinding && hasCredentialsBinding:
		errs = append(errs, field.Forbidden(path.Child("secretBindingName"), "is not possible together with credentialsBindingName"))
	}
	return errs
}

// cloudProfileName refuses the deprecated field of the profile for newer versions.
func cloudProfileName(spec *corev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	name := spec.CloudProfileName //nolint:staticcheck // refused here
	if ptr.Deref(name, "") != "" && parseVersion(spec.Kubernetes.Version).atLeast(1, 34) {
		return field.ErrorList{field.Forbidden(path.Child("cloudProfileName"), "is not possible from Kubernetes 1.34; use cloudProfile")}
	}
	return nil
}

// forbiddenWithoutWorkers refuses settings that a workerless cluster does not have.
func forbiddenWithoutWorkers(spec *corev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	forbid := func(set bool, path *field.Path) {
		if set {
			errs = append(errs, field.Forbidden(path, "is not possible for a cluster without workers"))
		}
	}
	//nolint:staticcheck // the old name of the credentials is still there
	forbid(spec.SecretBindingName != nil, path.Child("secretBindingName"))
	forbid(spec.CredentialsBindingName != nil, path.Child("credentialsBindingName"))
	forbid(spec.Addons != nil, path.Child("addons")) //nolint:staticcheck // old, but still there
	forbid(spec.SystemComponents != nil, path.Child("systemComponents"))
	if networking := spec.Networking; networking != nil {
		path := path.Child("networking")
		forbid(networking.Type != nil, path.Child("type"))
		forbid(networking.ProviderConfig != nil, path.Child("providerConfig"))
		forbid(networking.Pods != nil, path.Child("pods"))
		forbid(networking.Nodes != nil, path.Child("nodes"))
	}
	provider := path.Child("provider")
	forbid(spec.Provider.InfrastructureConfig != nil, provider.Child("infrastructureConfig"))
	forbid(spec.Provider.ControlPlaneConfig != nil, provider.Child("controlPlaneConfig"))
	forbid(spec.Provider.WorkersSettings != nil, provider.Child("workersSettings"))

	kubernetes := path.Child("kubernetes")
	forbid(spec.Kubernetes.ClusterAutoscaler != nil, kubernetes.Child("clusterAutoScaler"))
	forbid(spec.Kubernetes.VerticalPodAutoscaler != nil, kubernetes.Child("verticalPodAutoScaler"))
	forbid(spec.Kubernetes.KubeScheduler != nil, kubernetes.Child("kubeScheduler"))
	forbid(spec.Kubernetes.KubeProxy != nil, kubernetes.Child("kubeProxy"))
	forbid(spec.Kubernetes.Kubelet != nil, kubernetes.Child("kubelet"))
	if manager := spec.Kubernetes.KubeControllerManager; manager != nil {
		path := kubernetes.Child("kubeControllerManager")
		forbid(manager.HorizontalPodAutoscaler != nil, path.Child("horizontalPodAutoscaler"))
		forbid(manager.NodeCIDRMaskSize != nil, path.Child("nodeCIDRMaskSize"))
		forbid(manager.NodeCIDRMaskSizeIPv6 != nil, path.Child("nodeCIDRMaskSizeIPv6"))
		forbid(manager.NodeMonitorGracePeriod != nil, path.Child("nodeMonitorGracePeriod"))
		forbid(manager.PodEvictionTimeout != nil, path.Child("podEvictionTimeout")) //nolint:staticcheck // old, but still there
	}
	if maintenance := spec.Maintenance; maintenance != nil {
		path := path.Child("maintenance")
		forbid(maintenance.AutoUpdate != nil && maintenance.AutoUpdate.MachineImageVersion != nil, path.Child("autoUpdate", "machineImageVersion"))
		forbid(maintenance.AutoRotation != nil && maintenance.AutoRotation.Credentials != nil && maintenance.AutoRotation.Credentials.SSHKeypair != nil,
			path.Child("autoRotation", "credentials", "sshKeypair"))
	}
	return errs
}

// controlPlanePool returns the pool for the control plane of a self-hosted cluster.
func controlPlanePool(spec *corev1beta1.ShootSpec) *corev1beta1.Worker {
	for i := range spec.Provider.Workers {
		if spec.Provider.Workers[i].ControlPlane != nil {
			return &spec.Provider.Workers[i]
		}
	}
	return nil
}

// selfHosted checks the rules for self-hosted clusters.
func selfHosted(spec *corev1beta1.ShootSpec, namespace string, path *field.Path) field.ErrorList {
	if controlPlanePool(spec) == nil {
		return nil
	}
	var errs field.ErrorList
	if namespace != constants.GardenNamespace {
		errs = append(errs, field.Invalid(metadataPath.Child("namespace"), namespace, "self-hosted clusters must be in the namespace garden"))
	}
	if spec.SeedName != nil {
		errs = append(errs, field.Invalid(path.Child("seedName"), *spec.SeedName, "self-hosted clusters have no seed"))
	}
	if spec.Hibernation != nil {
		errs = append(errs, field.Forbidden(path.Child("hibernation"), "self-hosted clusters cannot be hibernated"))
	}
	pools := 0
	for i, worker := range spec.Provider.Workers {
		if worker.ControlPlane == nil {
			errs = append(errs, nearControlPlane(worker, controlPlanePool(spec).Zones, path.Child("provider", "workers").Index(i))...)
			continue
		}
		if pools++; pools > 1 {
			errs = append(errs, field.Invalid(path.Child("provider", "workers").Index(i).Child("controlPlane"), "", "only one pool can host the control plane"))
		}
		errs = append(errs, selfHostedPool(worker, spec.Provider.Type, path.Child("provider", "workers").Index(i))...)
	}
	return errs
}

// nearControlPlane keeps system components in the zones of the control plane.
func nearControlPlane(worker corev1beta1.Worker, zones []string, path *field.Path) field.ErrorList {
	if worker.SystemComponents != nil && !worker.SystemComponents.Allow ||
		!slices.ContainsFunc(worker.Zones, func(zone string) bool { return !slices.Contains(zones, zone) }) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("systemComponents"), worker.Zones, "are only possible in the zones of the control plane")}
}

func selfHostedPool(worker corev1beta1.Worker, providerType string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const only = "must be the same number for a pool that hosts the control plane"
	if worker.Maximum != worker.Minimum {
		errs = append(errs, field.Invalid(path.Child("minimum"), worker.Minimum, only), field.Invalid(path.Child("maximum"), worker.Maximum, only))
	} else if worker.Minimum != 1 {
		errs = append(errs, field.Invalid(path.Child("minimum"), worker.Minimum, "must be 1 for a pool that hosts the control plane"))
		if isZero(worker.MaxUnavailable) {
			errs = append(errs, field.Invalid(path.Child("maxUnavailable"), worker.MaxUnavailable.String(), "must not be 0, as machines of the control plane are replaced in place"))
		}
	}
	path = path.Child("controlPlane")
	if worker.ControlPlane.Backup != nil {
		errs = append(errs, backup(worker.ControlPlane.Backup, providerType, false, path.Child("backup"))...)
	}
	if exposure := worker.ControlPlane.Exposure; exposure != nil && exposure.Extension != nil && exposure.DNS != nil {
		errs = append(errs, field.Invalid(path.Child("exposure"), "", "only one of extension and dns can be set"))
	}
	return errs
}

func controlPlane(controlPlane *corev1beta1.ControlPlane, path *field.Path) field.ErrorList {
	if controlPlane == nil {
		return nil
	}
	var errs field.ErrorList
	zones := 1
	if availability := controlPlane.HighAvailability; availability != nil {
		errs = append(errs, supported(availability.FailureTolerance.Type, []corev1beta1.FailureToleranceType{
			corev1beta1.FailureToleranceTypeNode, corev1beta1.FailureToleranceTypeZone,
		}, path.Child("highAvailability", "failureTolerance", "type"))...)
		if availability.FailureTolerance.Type == corev1beta1.FailureToleranceTypeZone {
			zones = 3
		}
	}
	if len(controlPlane.Zones) > 0 && len(controlPlane.Zones) != zones {
		errs = append(errs, field.Invalid(path.Child("zones"), controlPlane.Zones, "must be three for failure tolerance type zone, and one otherwise"))
	}
	for i, zone := range controlPlane.Zones {
		if slices.Contains(controlPlane.Zones[:i], zone) {
			errs = append(errs, field.Duplicate(path.Child("zones").Index(i), zone))
		}
	}
	return errs
}

func shootDNS(dns *corev1beta1.DNS, version kubeVersion, path *field.Path) field.ErrorList {
	if dns == nil {
		return nil
	}
	var errs field.ErrorList
	if dns.Domain != nil {
		errs = append(errs, dnsSubdomain(*dns.Domain, path.Child("domain"))...)
	}
	primaries, domainPath := 0, path.Child("domain")
	//nolint:staticcheck // providers other than the primary one are old, but still there
	for i, provider := range dns.Providers {
		path := path.Child("providers").Index(i)
		unmanaged := ptr.Deref(provider.Type, "") == constants.DNSProviderUnmanaged
		primary := ptr.Deref(provider.Primary, false)
		if primary {
			if primaries++; primaries > 1 {
				errs = append(errs, field.Forbidden(path.Child("primary"), "only one provider can be primary"))
			}
			if dns.Domain == nil && !unmanaged {
				errs = append(errs, field.Required(domainPath, "must be set with a primary provider"))
			}
		} else if provider.CredentialsRef == nil && provider.SecretName == nil {
			errs = append(errs, field.Required(path.Child("credentialsRef"), "must be set for a provider that is not primary"))
		}
		same := func(p corev1beta1.DNSProvider) bool {
			return p.CredentialsRef != nil && equal(p.CredentialsRef, provider.CredentialsRef) && equal(p.Type, provider.Type)
		}
		if slices.ContainsFunc(dns.Providers[:i], same) {
			errs = append(errs, field.Invalid(path, ptr.Deref(provider.Type, ""), "type and credentials must differ from those of the other providers"))
		}
		if unmanaged && len(dns.Providers) > 1 {
			errs = append(errs, field.Invalid(path, *provider.Type, "is only possible alone"))
		}
		if provider.Type == nil && (provider.CredentialsRef != nil || provider.SecretName != nil) {
			errs = append(errs, field.Required(path.Child("type"), "must be set"))
		}
		if provider.SecretName != nil && version.atLeast(1, 35) {
			errs = append(errs, field.Forbidden(path.Child("secretName"), "is not possible from Kubernetes 1.35; use credentialsRef"))
		}
		switch {
		case provider.CredentialsRef != nil && unmanaged:
			errs = append(errs, field.Invalid(path.Child("credentialsRef"), "", "is not possible for the type unmanaged"))
		case provider.CredentialsRef != nil:
			errs = append(errs, credentialsInProject(*provider.CredentialsRef, path.Child("credentialsRef"))...)
		}
	}
	return errs
}

func monitoring(monitoring *corev1beta1.Monitoring, path *field.Path) field.ErrorList {
	if monitoring == nil || monitoring.Alerting == nil {
		return nil
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, address := range monitoring.Alerting.EmailReceivers {
		path := path.Child("alerting", "emailReceivers").Index(i)
		if !emailAddress.MatchString(address) {
			errs = append(errs, field.Invalid(path, address, "must be a mail address"))
		} else if seen.Has(address) {
			errs = append(errs, field.Duplicate(path, address))
		}
		seen.Insert(address)
	}
	return errs
}

func addons(spec *corev1beta1.ShootSpec, version kubeVersion, opts Options, path *field.Path) field.ErrorList {
	addons := spec.Addons //nolint:staticcheck // old, but still there
	if addons == nil {
		return nil
	}
	var errs field.ErrorList
	if version.atLeast(1, 35) {
		return field.ErrorList{field.Forbidden(path, "is not possible from Kubernetes 1.35")}
	}
	enabled := addons.KubernetesDashboard != nil && addons.KubernetesDashboard.Enabled || addons.NginxIngress != nil && addons.NginxIngress.Enabled
	if ptr.Deref(spec.Purpose, "") != corev1beta1.ShootPurposeEvaluation && enabled {
		errs = append(errs, field.Forbidden(path, "is only possible for the purpose evaluation"))
	}
	if dashboard := addons.KubernetesDashboard; dashboard != nil && dashboard.Enabled && dashboard.AuthenticationMode != nil {
		errs = append(errs, supported(*dashboard.AuthenticationMode, []string{constants.KubernetesDashboardAuthModeToken}, path.Child("kubernetesDashboard", "authenticationMode"))...)
	}
	if ingress := addons.NginxIngress; ingress != nil {
		path := path.Child("nginxIngress")
		if ingress.Enabled && opts.DisableNginxIngressInShoot {
			errs = append(errs, field.Forbidden(path.Child("enabled"), "is turned off in this landscape"))
		}
		errs = append(errs, externalTrafficPolicy(ingress.ExternalTrafficPolicy, path.Child("externalTrafficPolicy"))...)
		for i, cidr := range ingress.LoadBalancerSourceRanges {
			_, parseErrs := parseNetwork(cidr, nil, path.Child("loadBalancerSourceRanges").Index(i))
			errs = append(errs, parseErrs...)
		}
	}
	return errs
}

// maxCommonSuffixes limits the rewriting rules, which every query passes.
const maxCommonSuffixes = 5

func systemComponents(components *corev1beta1.SystemComponents, path *field.Path) field.ErrorList {
	if components == nil || components.CoreDNS == nil || components.CoreDNS.Rewriting == nil {
		return nil
	}
	path = path.Child("coreDNS", "rewriting", "commonSuffixes")
	suffixes := components.CoreDNS.Rewriting.CommonSuffixes
	var errs field.ErrorList
	if len(suffixes) > maxCommonSuffixes {
		errs = append(errs, field.TooMany(path, len(suffixes), maxCommonSuffixes))
	}
	seen := sets.New[string]()
	for i, suffix := range suffixes {
		name := strings.Trim(suffix, ".")
		if !strings.Contains(name, ".") {
			errs = append(errs, field.Invalid(path.Index(i), suffix, "must have at least two labels"))
		} else {
			for _, msg := range validation.IsDNS1123Subdomain(name) {
				errs = append(errs, field.Invalid(path.Index(i), suffix, msg))
			}
		}
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(path.Index(i), suffix))
		}
		seen.Insert(name)
	}
	return errs
}
