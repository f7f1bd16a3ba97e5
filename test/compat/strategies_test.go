package compat

import (
	"reflect"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/operations"
	"gardener.cloud/gardener/internal/validation/security"
	"gardener.cloud/gardener/internal/validation/seedmanagement"
	"gardener.cloud/gardener/internal/validation/settings"
)

// strategy is how requests for a kind are validated.
type strategy struct {
	create         func(obj runtime.Object) field.ErrorList
	update, status func(obj, old runtime.Object) field.ErrorList
}

// strategies are the validation functions of every kind.
var strategies = map[reflect.Type]strategy{}

// validate registers the validation functions of a kind.
func validate[T any, P interface {
	*T
	runtime.Object
}](create func(P) field.ErrorList, update, status func(obj, old P) field.ErrorList) {
	s := strategy{
		create: func(obj runtime.Object) field.ErrorList { return create(obj.(P)) },
		update: func(obj, old runtime.Object) field.ErrorList { return update(obj.(P), old.(P)) },
		status: func(obj, old runtime.Object) field.ErrorList { return nil },
	}
	if status != nil {
		s.status = func(obj, old runtime.Object) field.ErrorList { return status(obj.(P), old.(P)) }
	}
	strategies[reflect.TypeFor[T]()] = s
}

func init() {
	validate(
		func(project *corev1beta1.Project) field.ErrorList {
			project.Spec.CreatedBy = &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "replay"}
			addOwner(project)
			return core.ValidateProject(project)
		},
		func(project, old *corev1beta1.Project) field.ErrorList {
			addOwner(project)
			return core.ValidateProjectUpdate(project, old)
		}, core.ValidateProjectStatusUpdate)
	validate(core.ValidateQuota, core.ValidateQuotaUpdate, nil)
	validate(core.ValidateSecretBinding, core.ValidateSecretBindingUpdate, nil)
	validate(core.ValidateExposureClass, core.ValidateExposureClassUpdate, nil)
	validate(core.ValidateControllerRegistration, core.ValidateControllerRegistrationUpdate, nil)
	validate(core.ValidateControllerDeployment, core.ValidateControllerDeploymentUpdate, nil)
	validate(
		func(deployment *corev1beta1.ControllerDeployment) field.ErrorList {
			return core.ValidateControllerDeployment(toV1(deployment))
		},
		func(deployment, old *corev1beta1.ControllerDeployment) field.ErrorList {
			return core.ValidateControllerDeploymentUpdate(toV1(deployment), toV1(old))
		}, nil)
	validate(core.ValidateControllerInstallation, core.ValidateControllerInstallationUpdate, nil)
	validate(core.ValidateBackupBucket, core.ValidateBackupBucketUpdate, nil)
	validate(core.ValidateBackupEntry, core.ValidateBackupEntryUpdate, nil)
	validate(security.ValidateCredentialsBinding, security.ValidateCredentialsBindingUpdate, nil)
	validate(security.ValidateWorkloadIdentity, security.ValidateWorkloadIdentityUpdate, nil)
	validate(core.ValidatePlant, core.ValidatePlantUpdate, core.ValidatePlantStatusUpdate)
	validate(settings.ValidateOpenIDConnectPreset, settings.ValidateOpenIDConnectPresetUpdate, nil)
	validate(settings.ValidateClusterOpenIDConnectPreset, settings.ValidateClusterOpenIDConnectPresetUpdate, nil)
	validate(operations.ValidateBastion, operations.ValidateBastionUpdate, nil)
	validate(
		func(profile *corev1beta1.CloudProfile) field.ErrorList {
			dropExpired(&profile.Spec)
			return core.ValidateCloudProfile(profile, time.Now(), options)
		},
		func(profile, old *corev1beta1.CloudProfile) field.ErrorList {
			return core.ValidateCloudProfileUpdate(profile, old, time.Now(), options)
		},
		func(profile, old *corev1beta1.CloudProfile) field.ErrorList {
			return core.ValidateStatusMetadata(&profile.ObjectMeta, &old.ObjectMeta)
		})
	validate(
		func(profile *corev1beta1.NamespacedCloudProfile) field.ErrorList {
			return core.ValidateNamespacedCloudProfile(profile, options)
		},
		func(profile, old *corev1beta1.NamespacedCloudProfile) field.ErrorList {
			return core.ValidateNamespacedCloudProfileUpdate(profile, old, options)
		}, nil)
	validate(core.ValidateSeed, core.ValidateSeedUpdate, core.ValidateSeedStatusUpdate)
	validate(
		func(shoot *corev1beta1.Shoot) field.ErrorList {
			fillShoot(shoot)
			return core.ValidateShoot(shoot, options)
		},
		func(shoot, old *corev1beta1.Shoot) field.ErrorList {
			if domain := old.Spec.DNS; domain != nil && domain.Domain != nil && strings.HasSuffix(*domain.Domain, ".shoots.corpus.example.org") {
				if shoot.Spec.DNS == nil {
					shoot.Spec.DNS = &corev1beta1.DNS{}
				}
				if shoot.Spec.DNS.Domain == nil {
					shoot.Spec.DNS.Domain = domain.Domain
				}
			}
			fillShoot(shoot)
			fillShoot(old)
			return core.ValidateShootUpdate(shoot, old, options)
		}, core.ValidateShootStatusUpdate)
	validate(seedmanagement.ValidateGardenlet, seedmanagement.ValidateGardenletUpdate, seedmanagement.ValidateGardenletStatusUpdate)
	validate(seedmanagement.ValidateManagedSeed, seedmanagement.ValidateManagedSeedUpdate, seedmanagement.ValidateManagedSeedStatusUpdate)
	validate(
		func(set *seedmanagementv1alpha1.ManagedSeedSet) field.ErrorList {
			return seedmanagement.ValidateManagedSeedSet(set, options)
		},
		func(set, old *seedmanagementv1alpha1.ManagedSeedSet) field.ErrorList {
			return seedmanagement.ValidateManagedSeedSetUpdate(set, old, options)
		}, seedmanagement.ValidateManagedSeedSetStatusUpdate)
	validate(core.ValidateShootState, core.ValidateShootStateUpdate, nil)
	validate(
		func(secret *corev1beta1.InternalSecret) field.ErrorList {
			mergeStringData(secret)
			return core.ValidateInternalSecret(secret)
		},
		func(secret, old *corev1beta1.InternalSecret) field.ErrorList {
			mergeStringData(secret)
			mergeStringData(old)
			return core.ValidateInternalSecretUpdate(secret, old)
		}, nil)
}

func toV1(deployment *corev1beta1.ControllerDeployment) *gardencorev1.ControllerDeployment {
	out := &gardencorev1.ControllerDeployment{}
	if err := deployment.ToV1(out); err != nil {
		return &gardencorev1.ControllerDeployment{}
	}
	return out
}

// options are the feature gates that the recorded server had: their defaults.
var options = core.Options{CloudProfileCapabilities: true}

// dropExpired stands in for the strategy of CloudProfiles, which takes no new profile with versions that cannot be used.
func dropExpired(spec *corev1beta1.CloudProfileSpec) {
	unusable := func(v corev1beta1.ExpirableVersion) bool {
		c := v.ClassificationAt(time.Now())
		return c == corev1beta1.ClassificationExpired || c == corev1beta1.ClassificationUnavailable
	}
	spec.Kubernetes.Versions = slices.DeleteFunc(spec.Kubernetes.Versions, unusable)
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		image.Versions = slices.DeleteFunc(image.Versions, func(v corev1beta1.MachineImageVersion) bool { return unusable(v.ExpirableVersion) })
	}
}

// fillShoot stands in for the strategy and the admission plugin that fill in versions and images of Shoots.
func fillShoot(shoot *corev1beta1.Shoot) {
	patch := map[string]string{"": "1.36.1", "1": "1.36.1", "1.36": "1.36.1", "1.35": "1.35.4", "1.34": "1.34.7", "1.33": "1.33.11", "1.": "1.36.1"}
	if version, ok := patch[shoot.Spec.Kubernetes.Version]; ok {
		shoot.Spec.Kubernetes.Version = version
	}
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		if worker.Machine.Image == nil {
			worker.Machine.Image = &corev1beta1.ShootMachineImage{Name: "corpus-os"}
		}
		if worker.Machine.Image.Version == nil || *worker.Machine.Image.Version == "" {
			worker.Machine.Image.Version = new("1.2.0")
		}
		if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
			if version, ok := patch[*worker.Kubernetes.Version]; ok {
				worker.Kubernetes.Version = &version
			}
		}
	}
	if dns := shoot.Spec.DNS; dns != nil && len(dns.Providers) > 0 && shoot.Spec.SeedName != nil &&
		!slices.ContainsFunc(dns.Providers, func(p corev1beta1.DNSProvider) bool { return p.Primary != nil && *p.Primary }) {
		dns.Providers[0].Primary = new(true)
	}
	if name := shoot.Spec.CloudProfileName; name != nil && *name != "" && shoot.Spec.CloudProfile == nil {
		shoot.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: *name}
	}
}

// addOwner stands in for the admission plugin that makes the owner of a Project a member.
func addOwner(project *corev1beta1.Project) {
	owner := project.Spec.Owner
	if owner == nil {
		return
	}
	if slices.ContainsFunc(project.Spec.Members, func(m corev1beta1.ProjectMember) bool { return m.Subject == *owner }) {
		return
	}
	project.Spec.Members = append(project.Spec.Members, corev1beta1.ProjectMember{
		Subject: *owner, Role: constants.ProjectMemberAdmin, Roles: []string{constants.ProjectMemberOwner},
	})
}

// mergeStringData stands in for the strategy of InternalSecrets.
func mergeStringData(secret *corev1beta1.InternalSecret) {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

func metaOf(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}
