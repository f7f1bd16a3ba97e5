package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/shoot/dnsname"
	"gardener.cloud/gardener/internal/validation/core"
)

func shoot(settings Settings) *kind.Kind[corev1beta1.Shoot] {
	return &kind.Kind[corev1beta1.Shoot]{
		GroupVersionKind: gvk("Shoot"),
		Plural:           "shoots",
		Categories:       all,
		Namespaced:       true,
		HasStatus:        true,
		HasGeneration:    true,

		Canonicalize: canonicalizeShoot,
		Validate:     func(s *corev1beta1.Shoot) field.ErrorList { return core.ValidateShoot(s, settings.Validation) },
		ValidateUpdate: func(s, old *corev1beta1.Shoot) field.ErrorList {
			return core.ValidateShootUpdate(s, old, settings.Validation)
		},
		ValidateStatusUpdate: core.ValidateShootStatusUpdate,
		RolledOut:            shootRolledOut,
		Restarts: func(s, old *corev1beta1.Shoot) bool {
			// The deletion starts again, without the help of the cluster.
			return s.DeletionTimestamp != nil && core.ForceDeletionConfirmed(s) && !core.ForceDeletionConfirmed(old)
		},
		Warnings: func(s, old *corev1beta1.Shoot) []string {
			return slices.Concat(selfHostedWarnings(s, old), deprecationWarnings(s, old), rotationWarnings(s, settings.Clock.Now(), settings.RotationInterval))
		},
		Operation: shootOperation,
		Subresources: func(main *kind.Main[corev1beta1.Shoot]) map[string]rest.Storage {
			signers := newSigners()
			return map[string]rest.Storage{
				"binding":          main.View(shootBinding(settings)),
				"adminkubeconfig":  newAdminKubeconfig(settings, signers),
				"viewerkubeconfig": newViewerKubeconfig(settings, signers),
			}
		},
		Fields: map[string]func(*corev1beta1.Shoot) string{
			"spec.seedName":         func(s *corev1beta1.Shoot) string { return ptr.Deref(s.Spec.SeedName, "") },
			"status.seedName":       func(s *corev1beta1.Shoot) string { return ptr.Deref(s.Status.SeedName, "") },
			"spec.cloudProfileName": func(s *corev1beta1.Shoot) string { return ptr.Deref(s.Spec.CloudProfileName, "") },
			"spec.cloudProfile.Name": func(s *corev1beta1.Shoot) string {
				return ptr.Deref(s.Spec.CloudProfile, corev1beta1.CloudProfileReference{}).Name
			},
			"spec.cloudProfile.Kind": func(s *corev1beta1.Shoot) string {
				return ptr.Deref(s.Spec.CloudProfile, corev1beta1.CloudProfileReference{}).Kind
			},
		},
		InternalFields: map[string]func(*corev1beta1.Shoot) string{
			"spec.dns.domain": func(s *corev1beta1.Shoot) string { return dnsname.Of(s.Spec.DNS) },
		},
		IndexedFields: []string{"spec.seedName", "status.seedName", "spec.cloudProfile.Name", "spec.dns.domain"},
		Conditions:    func(s *corev1beta1.Shoot) []corev1beta1.Condition { return s.Status.Conditions },
		Columns: []kind.Column[corev1beta1.Shoot]{
			{
				Name: "CloudProfile", Description: "Profile of the infrastructure.",
				Value: func(s *corev1beta1.Shoot) any { return profileName(s) },
			},
			{
				Name: "Provider", Description: "Type of the provider.",
				Value: func(s *corev1beta1.Shoot) any { return s.Spec.Provider.Type },
			},
			{
				Name: "Region", Description: "Region of the infrastructure.",
				Value: func(s *corev1beta1.Shoot) any { return s.Spec.Region },
			},
			{
				Name: "Seed", Description: "Seed that is responsible.", Wide: true,
				Value: func(s *corev1beta1.Shoot) any { return cmp.Or(ptr.Deref(s.Spec.SeedName, ""), kind.None) },
			},
			{
				Name: "K8S Version", Description: "Kubernetes version.",
				Value: func(s *corev1beta1.Shoot) any { return s.Spec.Kubernetes.Version },
			},
			{
				Name: "Hibernation", Description: "Whether the cluster is hibernated.",
				Value: func(s *corev1beta1.Shoot) any { return hibernationState(s) },
			},
			{
				Name: "Last Operation", Description: "Type, state and progress of the last operation.",
				Value: func(s *corev1beta1.Shoot) any { return kind.LastOperation(s.Status.LastOperation) },
			},
			{
				Name: "Status", Description: "Health of the cluster as a whole.",
				Value: func(s *corev1beta1.Shoot) any { return cmp.Or(s.Labels[constants.ShootStatus], kind.Pending) },
			},
			{
				Name: "Purpose", Description: "Purpose of the cluster.", Wide: true,
				Value: func(s *corev1beta1.Shoot) any { return cmp.Or(string(ptr.Deref(s.Spec.Purpose, "")), kind.None) },
			},
			{
				Name: "Gardener Version", Description: "Version of the gardenlet that reconciled the cluster last.", Wide: true,
				Value: func(s *corev1beta1.Shoot) any { return cmp.Or(s.Status.Gardener.Version, kind.Unknown) },
			},
			{Name: "APIServer", Description: "Whether the kube-apiserver of the cluster is available.", Wide: true, Condition: corev1beta1.ShootAPIServerAvailable},
			{Name: "Control", Description: "Whether the control plane is healthy.", Wide: true, Condition: corev1beta1.ShootControlPlaneHealthy},
			{Name: "Observability", Description: "Whether monitoring and logging are healthy.", Wide: true, Condition: corev1beta1.ShootObservabilityComponentsHealthy},
			{Name: "Nodes", Description: "Whether all nodes are ready.", Wide: true, Condition: corev1beta1.ShootEveryNodeReady},
			{Name: "System", Description: "Whether the system components are healthy.", Wide: true, Condition: corev1beta1.ShootSystemComponentsHealthy},
		},
	}
}

// canonicalizeShoot copies values of deprecated fields to the fields that replace them, and sets the labels that selectors use.
// Validation, which comes before, has seen which of the fields the user set.
func canonicalizeShoot(shoot *corev1beta1.Shoot) {
	spec := &shoot.Spec
	if name := spec.CloudProfileName; ptr.Deref(name, "") != "" {
		if spec.CloudProfile == nil {
			spec.CloudProfile = &corev1beta1.CloudProfileReference{Name: *name}
		}
		spec.CloudProfileName = new(spec.CloudProfile.Name)
	}
	if spec.CloudProfile != nil && spec.CloudProfile.Kind == "" {
		spec.CloudProfile.Kind = constants.CloudProfileReferenceKindCloudProfile
	}
	if spec.DNS != nil {
		for i := range spec.DNS.Providers {
			provider := &spec.DNS.Providers[i]
			if name := ptr.Deref(provider.SecretName, ""); name != "" && provider.CredentialsRef == nil {
				provider.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: name}
			}
		}
	}
	if autoscaler := spec.Kubernetes.ClusterAutoscaler; autoscaler != nil {
		autoscaler.MaxEmptyBulkDelete = nil
	}
	if server := spec.Kubernetes.KubeAPIServer; server != nil && !ptr.Deref(server.EnableAnonymousAuthentication, false) {
		server.EnableAnonymousAuthentication = nil
	}

	for _, key := range []string{constants.GardenerOperation, constants.GardenerMaintenanceOperation} {
		if value, ok := shoot.Annotations[key]; ok {
			shoot.Annotations[key] = core.WithoutCoveredOperations(value)
		}
	}
	labelSeeds(&shoot.ObjectMeta, spec.SeedName, shoot.Status.SeedName)
	if shoot.SelfHosted() {
		metav1.SetMetaDataLabel(&shoot.ObjectMeta, constants.ShootIsSelfHosted, "true")
	} else {
		delete(shoot.Labels, constants.ShootIsSelfHosted)
	}
}

// deprecatedFields are those of a Shoot that have a replacement, or no effect, in the order of the spec.
var deprecatedFields = []struct {
	path, advice string
	set          func(spec *corev1beta1.ShootSpec) bool
}{
	{"spec.addons", "install such components yourself", func(s *corev1beta1.ShootSpec) bool {
		a := s.Addons
		return a != nil && (a.KubernetesDashboard != nil && a.KubernetesDashboard.Enabled || a.NginxIngress != nil && a.NginxIngress.Enabled)
	}},
	{"spec.cloudProfileName", "use spec.cloudProfile", func(s *corev1beta1.ShootSpec) bool { return s.CloudProfileName != nil && s.CloudProfile == nil }},
	{"spec.dns.providers[].secretName", "use credentialsRef", func(s *corev1beta1.ShootSpec) bool {
		return s.DNS != nil && slices.ContainsFunc(s.DNS.Providers, func(p corev1beta1.DNSProvider) bool { return p.SecretName != nil })
	}},
	{"spec.dns.providers[].domains and zones", "they have no effect", func(s *corev1beta1.ShootSpec) bool {
		return s.DNS != nil && slices.ContainsFunc(s.DNS.Providers, func(p corev1beta1.DNSProvider) bool { return p.Domains != nil || p.Zones != nil })
	}},
	{"spec.kubernetes.clusterAutoscaler.ignoreTaints", "use startupTaints or statusTaints", func(s *corev1beta1.ShootSpec) bool {
		return s.Kubernetes.ClusterAutoscaler != nil && len(s.Kubernetes.ClusterAutoscaler.IgnoreTaints) > 0
	}},
	{"spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete", "use maxScaleDownParallelism", func(s *corev1beta1.ShootSpec) bool {
		return s.Kubernetes.ClusterAutoscaler != nil && s.Kubernetes.ClusterAutoscaler.MaxEmptyBulkDelete != nil
	}},
	{"spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication", "use structuredAuthentication", func(s *corev1beta1.ShootSpec) bool {
		return s.Kubernetes.KubeAPIServer != nil && ptr.Deref(s.Kubernetes.KubeAPIServer.EnableAnonymousAuthentication, false)
	}},
	{"spec.kubernetes.kubeAPIServer.watchCacheSizes.default", "it has no effect", func(s *corev1beta1.ShootSpec) bool {
		server := s.Kubernetes.KubeAPIServer
		return server != nil && server.WatchCacheSizes != nil && server.WatchCacheSizes.Default != nil
	}},
	{"spec.kubernetes.kubeControllerManager.podEvictionTimeout", "it has no effect", func(s *corev1beta1.ShootSpec) bool {
		return s.Kubernetes.KubeControllerManager != nil && s.Kubernetes.KubeControllerManager.PodEvictionTimeout != nil
	}},
	{"spec.kubernetes.kubeScheduler.kubeMaxPDVols", "it has no effect", func(s *corev1beta1.ShootSpec) bool {
		return s.Kubernetes.KubeScheduler != nil && s.Kubernetes.KubeScheduler.KubeMaxPDVols != nil
	}},
	{"spec.secretBindingName", "use spec.credentialsBindingName", func(s *corev1beta1.ShootSpec) bool { return s.SecretBindingName != nil }},
}

// deprecationWarnings name deprecated fields that a request sets. Those that the old object, if any, has as well were warned about.
func deprecationWarnings(shoot, old *corev1beta1.Shoot) []string {
	var out []string
	for _, field := range deprecatedFields {
		if field.set(&shoot.Spec) && (old == nil || !field.set(&old.Spec)) {
			out = append(out, field.path+" is deprecated: "+field.advice)
		}
	}
	return out
}

// selfHostedWarnings say that nothing acts on a Shoot that hosts its own control plane: no seed is chosen for it, and its status stays empty.
func selfHostedWarnings(shoot, old *corev1beta1.Shoot) []string {
	if !shoot.SelfHosted() || old != nil && old.SelfHosted() {
		return nil
	}
	return []string{"spec.provider.workers[].controlPlane: neither gardenadm nor a gardenlet for self-hosted clusters is part of this version: " +
		"the Shoot is stored, and nothing creates or reconciles its cluster"}
}

// rotationWarnings name the credentials of a shoot that were not rotated for longer than the interval.
func rotationWarnings(shoot *corev1beta1.Shoot, now time.Time, interval time.Duration) []string {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	rotation := &corev1beta1.ShootCredentialsRotation{}
	if credentials := shoot.Status.Credentials; credentials != nil && credentials.Rotation != nil {
		rotation = credentials.Rotation
	}
	var out []string
	check := func(credentials, operation string, lastInitiation *metav1.Time) {
		if lastInitiation == nil {
			lastInitiation = &shoot.CreationTimestamp
		}
		if age := now.Sub(lastInitiation.Time); age > interval {
			out = append(out, fmt.Sprintf("the %s of this cluster should be rotated, which was not done for %d days: annotate the Shoot with %s=%s",
				credentials, int(age/(24*time.Hour)), constants.GardenerOperation, operation))
		}
	}
	check("CAs", constants.OperationRotateCAStart, ptr.Deref(rotation.CertificateAuthorities, corev1beta1.CARotation{}).LastInitiationTime)
	check("etcd encryption key", constants.OperationRotateETCDEncryptionKey, ptr.Deref(rotation.ETCDEncryptionKey, corev1beta1.ETCDEncryptionKeyRotation{}).LastInitiationTime)
	check("service account key", constants.OperationRotateServiceAccountKeyStart, ptr.Deref(rotation.ServiceAccountKey, corev1beta1.ServiceAccountKeyRotation{}).LastInitiationTime)
	check("observability credentials", constants.OperationRotateObservabilityCredentials, ptr.Deref(rotation.Observability, corev1beta1.ObservabilityRotation{}).LastInitiationTime)
	if shoot.Spec.Provider.SSHAccessEnabled() {
		check("SSH key of the nodes", constants.OperationRotateSSHKeypair, ptr.Deref(rotation.SSHKeypair, corev1beta1.ShootSSHKeypairRotation{}).LastInitiationTime)
	}
	return out
}

// shootRolledOut reports whether a changed spec is rolled out at once. With confineSpecUpdateRollout, changes wait for the maintenance
// time window and start no new generation, except for hibernation.
func shootRolledOut(shoot, old *corev1beta1.Shoot) bool {
	if m := shoot.Spec.Maintenance; m != nil && ptr.Deref(m.ConfineSpecUpdateRollout, false) {
		return shoot.HibernationWanted() != old.HibernationWanted()
	}
	return true
}

// shootOperation returns what an operation does to the generation of a shoot. Before its first operation there is nothing to
// reconcile again, and a failed operation can only be retried.
func shootOperation(shoot *corev1beta1.Shoot, operation string) kind.Effect {
	last := shoot.Status.LastOperation
	switch {
	case last == nil, core.CoveredOperation(shoot.Annotations[constants.GardenerOperation], operation):
		return kind.Uncounted
	case last.State == corev1beta1.LastOperationStateFailed:
		if operation == constants.ShootOperationRetry {
			return kind.Taken
		}
		return kind.Uncounted
	case operation == constants.GardenerOperationReconcile:
		return kind.Taken
	case strings.HasPrefix(operation, "rotate-"), strings.HasPrefix(operation, constants.OperationRolloutWorkers):
		return kind.Counted // the gardenlet reads which
	}
	return kind.Uncounted
}

// profileName returns the name of a shoot's profile for a cell, with the namespace of a NamespacedCloudProfile.
func profileName(shoot *corev1beta1.Shoot) string {
	ref := ptr.Deref(shoot.Spec.CloudProfile, corev1beta1.CloudProfileReference{})
	name := cmp.Or(ref.Name, ptr.Deref(shoot.Spec.CloudProfileName, ""))
	if ref.Kind == constants.CloudProfileReferenceKindNamespacedCloudProfile {
		return shoot.Namespace + "/" + name
	}
	return name
}

// hibernationState returns what the column Hibernation of a shoot shows.
func hibernationState(shoot *corev1beta1.Shoot) string {
	switch hibernated := shoot.Status.Hibernated; {
	case shoot.HibernationWanted() && hibernated:
		return "Hibernated"
	case shoot.HibernationWanted():
		return "Hibernating"
	case hibernated:
		return "Waking Up"
	}
	return "Awake"
}

// labelSeeds labels objects with the seed that they belong to, or with both while they move from one to the other.
func labelSeeds(meta *metav1.ObjectMeta, names ...*string) {
	for key := range meta.Labels {
		if strings.HasPrefix(key, constants.PrefixSeedName) {
			delete(meta.Labels, key)
		}
	}
	for _, name := range names {
		if ptr.Deref(name, "") != "" {
			metav1.SetMetaDataLabel(meta, constants.PrefixSeedName+*name, "true")
		}
	}
}
