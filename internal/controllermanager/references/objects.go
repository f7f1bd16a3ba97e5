package references

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/cloudprofile"
)

// list collects references.
type list []Ref

// add adds a reference, unless its name is empty.
func (l *list) add(kind, namespace, name string) {
	if name != "" {
		*l = append(*l, Ref{kind, namespace, name})
	}
}

// addName adds a reference to an object whose name is optional.
func (l *list) addName(kind, namespace string, name *string) {
	if name != nil {
		l.add(kind, namespace, *name)
	}
}

// addFile adds a reference to a Secret or ConfigMap. References to other kinds are ignored.
func (l *list) addFile(kind, namespace, name string) {
	if kind == Secret || kind == ConfigMap {
		l.add(kind, namespace, name)
	}
}

// addCluster adds the references of an object that belongs to a Seed or to a self-hosted Shoot.
func (l *list) addCluster(seed *string, shoot *corev1.ObjectReference) {
	l.addName(Seed, "", seed)
	if shoot != nil {
		l.add(Shoot, shoot.Namespace, shoot.Name)
	}
}

// all returns what an object refers to, in any order, possibly more than once.
func all(obj client.Object) []Ref {
	var l list
	switch obj := obj.(type) {
	case *corev1beta1.Shoot:
		l.addShoot(obj)
	case *corev1beta1.Seed:
		l.addSeed(obj)
	case *gardencorev1.ControllerDeployment:
		l.addControllerDeployment(obj)
	case *corev1beta1.ControllerRegistration:
		if deployment := obj.Spec.Deployment; deployment != nil {
			for _, ref := range deployment.DeploymentRefs {
				l.add(ControllerDeployment, "", ref.Name)
			}
		}
	case *corev1beta1.ControllerInstallation:
		l.add(ControllerRegistration, "", obj.Spec.RegistrationRef.Name)
		if ref := obj.Spec.SeedRef; ref != nil {
			l.add(Seed, "", ref.Name)
		}
		l.addCluster(nil, obj.Spec.ShootRef)
	case *corev1beta1.BackupBucket:
		l.addCluster(obj.Spec.SeedName, obj.Spec.ShootRef)
	case *corev1beta1.BackupEntry:
		l.addCluster(obj.Spec.SeedName, obj.Spec.ShootRef)
	case *corev1beta1.NamespacedCloudProfile:
		l.add(CloudProfile, "", obj.Spec.Parent.Name)
	case *corev1beta1.Plant:
		if obj.DeletionTimestamp == nil {
			l.add(Secret, obj.Namespace, obj.Spec.SecretRef.Name)
		}
	case *corev1beta1.SecretBinding:
		l.add(Secret, cmp.Or(obj.SecretRef.Namespace, obj.Namespace), obj.SecretRef.Name)
		l.addQuotas(obj.Namespace, obj.Quotas)
	case *securityv1alpha1.CredentialsBinding:
		l.add(obj.CredentialsRef.Kind, cmp.Or(obj.CredentialsRef.Namespace, obj.Namespace), obj.CredentialsRef.Name)
		l.addQuotas(obj.Namespace, obj.Quotas)
	case *corev1beta1.Project:
		l.addName(Namespace, "", obj.Spec.Namespace)
	case *seedmanagementv1alpha1.ManagedSeed:
		if obj.Spec.Shoot != nil {
			l.add(Shoot, obj.Namespace, obj.Spec.Shoot.Name)
		}
	case *operationsv1alpha1.Bastion:
		l.add(Shoot, obj.Namespace, obj.Spec.ShootRef.Name)
	case *rbacv1.ClusterRole:
		if obj.Labels[constants.GardenRole] == constants.GardenRoleExtensionProjectRole {
			l.add(Project, "", obj.Labels[constants.ProjectName])
		}
	}
	return l
}

func (l *list) addQuotas(namespace string, quotas []corev1.ObjectReference) {
	for _, quota := range quotas {
		l.add(Quota, cmp.Or(quota.Namespace, namespace), quota.Name)
	}
}

// addShoot adds the seeds of a Shoot, which are two while its control plane is migrated, its cloud profile, its credentials, and its
// Secrets and ConfigMaps. A Shoot that is being deleted needs the latter until the gardenlet has removed its control plane, and its
// finalizer with it.
func (l *list) addShoot(shoot *corev1beta1.Shoot) {
	spec := &shoot.Spec
	l.addName(Seed, "", spec.SeedName)
	l.addName(Seed, "", shoot.Status.SeedName)
	l.addName(ExposureClass, "", spec.ExposureClassName)
	l.addName(CredentialsBinding, shoot.Namespace, spec.CredentialsBindingName)
	l.addName(SecretBinding, shoot.Namespace, spec.SecretBindingName) //nolint:staticcheck // Shoots without a CredentialsBinding have one
	switch ref := cloudprofile.Reference(spec); {
	case ref == nil:
	case ref.Kind == NamespacedCloudProfile:
		l.add(ref.Kind, shoot.Namespace, ref.Name)
	default:
		l.add(ref.Kind, "", ref.Name)
	}
	if shoot.DeletionTimestamp != nil && !slices.Contains(shoot.Finalizers, constants.FinalizerGardenerName) {
		return
	}
	if api := spec.Kubernetes.KubeAPIServer; api != nil {
		for _, plugin := range api.AdmissionPlugins {
			l.addName(Secret, shoot.Namespace, plugin.KubeconfigSecretName)
		}
		if audit := api.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
			l.add(ConfigMap, shoot.Namespace, audit.AuditPolicy.ConfigMapRef.Name)
		}
		if authn := api.StructuredAuthentication; authn != nil {
			l.add(ConfigMap, shoot.Namespace, authn.ConfigMapName)
		}
		if authz := api.StructuredAuthorization; authz != nil {
			l.add(ConfigMap, shoot.Namespace, authz.ConfigMapName)
			for _, kubeconfig := range authz.Kubeconfigs {
				l.add(Secret, shoot.Namespace, kubeconfig.SecretName)
			}
		}
	}
	if dns := spec.DNS; dns != nil {
		for _, provider := range dns.Providers { //nolint:staticcheck // still in use
			l.addName(Secret, shoot.Namespace, provider.SecretName) //nolint:staticcheck // as above
			if ref := provider.CredentialsRef; ref != nil && ref.APIVersion == "v1" && ref.Kind == Secret {
				l.add(Secret, shoot.Namespace, ref.Name)
			}
		}
	}
	for _, resource := range spec.Resources {
		if ref := resource.ResourceRef; ref.APIVersion == "v1" {
			l.addFile(ref.Kind, shoot.Namespace, ref.Name)
		}
	}
}

// addSeed adds the Secrets and ConfigMaps of a Seed: those of its extensions, and the credentials for its backups and DNS records.
func (l *list) addSeed(seed *corev1beta1.Seed) {
	if released(seed) {
		return
	}
	for _, resource := range seed.Spec.Resources {
		l.addFile(resource.ResourceRef.Kind, constants.GardenNamespace, resource.ResourceRef.Name)
	}
	credentials := func(ref *corev1.ObjectReference) {
		if ref != nil {
			l.addFile(ref.Kind, ref.Namespace, ref.Name)
		}
	}
	if seed.Spec.Backup != nil {
		credentials(seed.Spec.Backup.CredentialsRef)
	}
	dns := &seed.Spec.DNS
	if dns.Provider != nil {
		credentials(dns.Provider.CredentialsRef)
	}
	if dns.Internal != nil {
		credentials(&dns.Internal.CredentialsRef)
	}
	for i := range dns.Defaults {
		credentials(&dns.Defaults[i].CredentialsRef)
	}
}

// addControllerDeployment adds the Secrets and ConfigMaps of a ControllerDeployment: credentials and CA bundle for the registry of its
// chart, and what the values of the chart refer to.
func (l *list) addControllerDeployment(deployment *gardencorev1.ControllerDeployment) {
	if released(deployment) {
		return
	}
	if deployment.Helm != nil && deployment.Helm.OCIRepository != nil {
		repository := deployment.Helm.OCIRepository
		for _, ref := range []*corev1.LocalObjectReference{repository.PullSecretRef, repository.CABundleSecretRef} {
			if ref != nil {
				l.add(Secret, constants.GardenNamespace, ref.Name)
			}
		}
	}
	for _, resource := range deployment.Resources {
		l.addFile(resource.ResourceRef.Kind, constants.GardenNamespace, resource.ResourceRef.Name)
	}
}

// released reports whether an object is being deleted and has no finalizer left but that of the reference protection. Until then its
// gardenlet may need what the object refers to.
func released(obj client.Object) bool {
	return obj.GetDeletionTimestamp() != nil && !slices.ContainsFunc(obj.GetFinalizers(), func(finalizer string) bool {
		return finalizer != constants.FinalizerReferenceProtection
	})
}
