package shootmutator

import (
	"strings"
	"time"

	"k8s.io/utils/ptr"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// encryptionKeyRotationPeriod is how often the etcd encryption key of new shoots is rotated.
const encryptionKeyRotationPeriod = 28 * 24 * time.Hour

// addCreator records the user who created the shoot, instead of what the request has.
func addCreator(shoot *corev1beta1.Shoot, user string) {
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.GardenCreatedBy, user)
}

// addEncryptionKeyRotation enables the automatic rotation of the etcd encryption key of a new shoot.
func addEncryptionKeyRotation(shoot *corev1beta1.Shoot) {
	maintenance := ensure(&shoot.Spec.Maintenance)
	credentials := ensure(&ensure(&maintenance.AutoRotation).Credentials)
	if credentials.ETCDEncryptionKey == nil {
		credentials.ETCDEncryptionKey = &corev1beta1.MaintenanceRotationConfig{
			RotationPeriod: &metav1.Duration{Duration: encryptionKeyRotationPeriod},
		}
	}
}

// addTasks records the extra tasks of the next reconciliation because of this change, and that a failed shoot is to be retried.
func addTasks(shoot, old *corev1beta1.Shoot, isNew bool) {
	infrastructure := isNew || !apiequality.Semantic.DeepEqual(shoot.Spec.Provider.InfrastructureConfig,
		old.Spec.Provider.InfrastructureConfig)
	if old.Spec.Networking != nil && old.Spec.Networking.IPFamilies != nil {
		infrastructure = infrastructure || shoot.Spec.Networking == nil ||
			!apiequality.Semantic.DeepEqual(shoot.Spec.Networking.IPFamilies, old.Spec.Networking.IPFamilies)
	}
	if was, is := sshAccess(old), sshAccess(shoot); was != nil && is != nil && was.Enabled != is.Enabled {
		infrastructure = true
	}
	for operation := range strings.SplitSeq(shoot.Annotations[constants.GardenerOperation], ";") {
		infrastructure = infrastructure || operation == constants.OperationRotateSSHKeypair ||
			operation == constants.OperationRotateCredentialsStart || operation == constants.OperationRotateCredentialsStartWithoutWorkersRollout
	}
	if infrastructure {
		addTask(shoot, constants.ShootTaskDeployInfrastructure)
	}
	if isNew || !apiequality.Semantic.DeepEqual(shoot.Spec.DNS, old.Spec.DNS) {
		addTask(shoot, constants.ShootTaskDeployDNSRecordInternal, constants.ShootTaskDeployDNSRecordExternal,
			constants.ShootTaskDeployDNSRecordIngress)
	}
	m, last := shoot.Spec.Maintenance, shoot.Status.LastOperation
	confined := m != nil && ptr.Deref(m.ConfineSpecUpdateRollout, false)
	// A new shoot has not failed: the status in the request is removed.
	if !isNew && confined && last != nil && last.State == corev1beta1.LastOperationStateFailed &&
		!apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.FailedShootNeedsRetryOperation, "true")
	}
}

func sshAccess(shoot *corev1beta1.Shoot) *corev1beta1.SSHAccess {
	if settings := shoot.Spec.Provider.WorkersSettings; settings != nil {
		return settings.SSHAccess
	}
	return nil
}

func addTask(shoot *corev1beta1.Shoot, tasks ...string) {
	kube.AddToAnnotation(&shoot.ObjectMeta, constants.ShootTasks, constants.TasksSeparator, tasks...)
}

// ensure returns what a field points to, and sets it before if it is nil.
func ensure[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}
