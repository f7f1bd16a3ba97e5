package shootmutator

import (
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// encryptionKeyRotationPeriod is how often new shoots renew the key that encrypts their etcd.
const encryptionKeyRotationPeriod = 28 * 24 * time.Hour

// addCreator notes who made the shoot, whatever the request says.
func addCreator(shoot *corev1beta1.Shoot, user string) {
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.GardenCreatedBy, user)
}

// addEncryptionKeyRotation makes a new shoot renew its encryption key by itself.
func addEncryptionKeyRotation(shoot *corev1beta1.Shoot) {
	maintenance := ensure(&shoot.Spec.Maintenance)
	credentials := ensure(&ensure(&maintenance.AutoRotation).Credentials)
	if credentials.ETCDEncryptionKey == nil {
		credentials.ETCDEncryptionKey = &corev1beta1.MaintenanceRotationConfig{
			RotationPeriod: &metav1.Duration{Duration: encryptionKeyRotationPeriod},
		}
	}
}

// addTasks notes what the next reconciliation has to do because of this change, and that a failed shoot is to be tried again.
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
	confined := m != nil && m.ConfineSpecUpdateRollout != nil && *m.ConfineSpecUpdateRollout
	// A new shoot has not failed, whatever it says: its status is dropped.
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

// ensure returns what a field points to, which is made if there is nothing.
func ensure[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}
