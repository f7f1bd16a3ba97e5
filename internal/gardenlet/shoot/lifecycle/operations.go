package lifecycle

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/controlplanenamespace"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/rotation"
	"gardener.cloud/gardener/internal/shoot/observed"
)

// knownTasks are those of the tasks annotation that an operation does. There is no DNSRecord for ingress, and every operation reconciles the
// names of the Secrets of gardener-node-agents.
var knownTasks = []string{
	constants.ShootTaskDeployInfrastructure, constants.ShootTaskDeployDNSRecordInternal, constants.ShootTaskDeployDNSRecordExternal,
	constants.ShootTaskDeployDNSRecordIngress, constants.ShootTaskRestartControlPlanePods, constants.ShootTaskRestartCoreAddons,
	constants.ShootTaskUpdateGardenerNodeAgentSecretName,
}

// requestedTasks are those of the tasks annotation.
func requestedTasks(shoot *corev1beta1.Shoot) []string {
	return kube.SplitAnnotation(shoot.Annotations[constants.ShootTasks], constants.TasksSeparator)
}

// removeTasks removes the tasks that an operation has done from the annotation. Those that were added while it ran are for the next one, and
// unknown ones for other controllers.
func (r *reconciler) removeTasks(ctx context.Context, shoot *corev1beta1.Shoot, done []string) error {
	if len(done) == 0 {
		return nil
	}
	return r.updateAnnotation(ctx, shoot, constants.ShootTasks, func(current string) string {
		return strings.Join(remainingTasks(kube.SplitAnnotation(current, constants.TasksSeparator), done), constants.TasksSeparator)
	})
}

// remainingTasks are those that were not done, or are for other controllers.
func remainingTasks(requested, done []string) []string {
	return slices.DeleteFunc(slices.Clone(requested), func(name string) bool {
		return slices.Contains(done, name) && slices.Contains(knownTasks, name)
	})
}

// removeOperations removes the operations that have begun from the annotation: the status has them now.
func (r *reconciler) removeOperations(ctx context.Context, shoot *corev1beta1.Shoot, begun []string) error {
	if len(begun) == 0 {
		return nil
	}
	return r.updateAnnotation(ctx, shoot, constants.GardenerOperation, func(current string) string {
		left := slices.DeleteFunc(kube.SplitAnnotation(current, constants.OperationsSeparator), func(operation string) bool { return slices.Contains(begun, operation) })
		return strings.Join(left, constants.OperationsSeparator)
	})
}

// updateAnnotation writes what is left of an annotation, given its current value. What a user adds to it meanwhile stays.
func (r *reconciler) updateAnnotation(ctx context.Context, shoot *corev1beta1.Shoot, annotation string, left func(current string) string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := &corev1beta1.Shoot{}
		if err := r.GardenAPI.Get(ctx, client.ObjectKeyFromObject(shoot), current); err != nil {
			return client.IgnoreNotFound(err)
		}
		value, exists := current.Annotations[annotation]
		rest := left(value)
		if rest == value && (rest != "" || !exists) {
			return nil
		}
		before := current.DeepCopy()
		if rest == "" {
			delete(current.Annotations, annotation)
		} else {
			current.Annotations[annotation] = rest
		}
		return r.gardenCache.Patch(ctx, current, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}

// rotating is whether a rotation continues without the owner.
func rotating(shoot *corev1beta1.Shoot) bool {
	r := observed.Rotation(shoot)
	ca, key := r.CertificateAuthorities, r.ETCDEncryptionKey
	return key != nil && key.Phase == corev1beta1.RotationCompleting ||
		ca != nil && ca.Phase == corev1beta1.RotationCompleted && ca.LastCompletionTriggeredTime != nil
}

// rotations returns those of a status, which it fills with empty ones as needed.
func rotations(c *corev1beta1.ShootCredentials) (ca, account, encryption rotation.Phased) {
	if c.Rotation == nil {
		c.Rotation = &corev1beta1.ShootCredentialsRotation{}
	}
	r := c.Rotation
	if r.CertificateAuthorities == nil {
		r.CertificateAuthorities = &corev1beta1.CARotation{}
	}
	if r.ServiceAccountKey == nil {
		r.ServiceAccountKey = &corev1beta1.ServiceAccountKeyRotation{}
	}
	if r.ETCDEncryptionKey == nil {
		r.ETCDEncryptionKey = &corev1beta1.ETCDEncryptionKeyRotation{}
	}
	return rotation.OfCAs(r.CertificateAuthorities), rotation.OfServiceAccountKey(r.ServiceAccountKey), rotation.OfEncryptionKey(r.ETCDEncryptionKey)
}

// removeUnbegun removes the rotations that never began.
func removeUnbegun(c *corev1beta1.ShootCredentials) {
	r := c.Rotation
	if r.CertificateAuthorities != nil && r.CertificateAuthorities.Phase == "" {
		r.CertificateAuthorities = nil
	}
	if r.ServiceAccountKey != nil && r.ServiceAccountKey.Phase == "" {
		r.ServiceAccountKey = nil
	}
	if r.ETCDEncryptionKey != nil && r.ETCDEncryptionKey.Phase == "" {
		r.ETCDEncryptionKey = nil
	}
	if *r == (corev1beta1.ShootCredentialsRotation{}) {
		c.Rotation = nil
	}
}

// beginOperations writes into a status that the operations of the annotation begin. It returns those that do, and the others, which are
// for other controllers.
func beginOperations(shoot *corev1beta1.Shoot, now metav1.Time) (begun, others []string) {
	if shoot.Status.Credentials == nil {
		shoot.Status.Credentials = &corev1beta1.ShootCredentials{}
	}
	c := shoot.Status.Credentials
	ca, account, encryption := rotations(c)
	pools, withoutRollout := shoot.Spec.Provider.Workers, corev1beta1.RotationPreparingWithoutWorkersRollout
	if shoot.Workerless() {
		withoutRollout = corev1beta1.RotationPreparing // there is no rollout to wait for
	}
	for _, operation := range kube.SplitAnnotation(shoot.Annotations[constants.GardenerOperation], constants.OperationsSeparator) {
		base, names, _ := strings.Cut(operation, "=")
		switch base {
		case constants.GardenerOperationReconcile, constants.ShootOperationRetry:
		case constants.OperationRotateCredentialsStart:
			ca.Start(now, corev1beta1.RotationPreparing)
			account.Start(now, corev1beta1.RotationPreparing)
			encryption.Start(now, corev1beta1.RotationPreparing)
			rotateSSH(c, shoot, now)
			rotateObservability(c, now)
		case constants.OperationRotateCredentialsStartWithoutWorkersRollout:
			ca.Start(now, withoutRollout, pools...)
			account.Start(now, withoutRollout, pools...)
			encryption.Start(now, corev1beta1.RotationPreparing)
			rotateSSH(c, shoot, now)
			rotateObservability(c, now)
		case constants.OperationRotateCredentialsComplete:
			ca.Complete(now)
			account.Complete(now)
			encryption.Complete(now)
		case constants.OperationRotateCAStart:
			ca.Start(now, corev1beta1.RotationPreparing)
		case constants.OperationRotateCAStartWithoutWorkersRollout:
			ca.Start(now, withoutRollout, pools...)
		case constants.OperationRotateCAComplete:
			ca.Complete(now)
		case constants.OperationRotateServiceAccountKeyStart:
			account.Start(now, corev1beta1.RotationPreparing)
		case constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout:
			account.Start(now, withoutRollout, pools...)
		case constants.OperationRotateServiceAccountKeyComplete:
			account.Complete(now)
		case constants.OperationRotateETCDEncryptionKey:
			encryption.Start(now, corev1beta1.RotationPreparing)
			c.Rotation.ETCDEncryptionKey.AutoCompleteAfterPrepared = new(true)
		case constants.OperationRotateETCDEncryptionKeyStart:
			encryption.Start(now, corev1beta1.RotationPreparing)
		case constants.OperationRotateETCDEncryptionKeyComplete:
			encryption.Complete(now)
		case constants.OperationRotateSSHKeypair:
			rotateSSH(c, shoot, now)
		case constants.OperationRotateObservabilityCredentials:
			rotateObservability(c, now)
		case constants.OperationRotateRolloutWorkers:
			rolledOut(ca, names)
			rolledOut(account, names)
		case constants.OperationRolloutWorkers:
			rollOut(shoot, names, now)
		default:
			others = append(others, operation)
			continue
		}
		begun = append(begun, operation)
	}
	removeEmpty(c, shoot)
	return begun, others
}

// finishRotations writes into a status that the steps of rotations which had begun are done.
func finishRotations(shoot *corev1beta1.Shoot, now metav1.Time) {
	c := shoot.Status.Credentials
	if c == nil || c.Rotation == nil {
		return
	}
	ca, account, encryption := rotations(c)
	removeDeletedPools(ca, shoot.Spec.Provider.Workers)
	removeDeletedPools(account, shoot.Spec.Provider.Workers)
	completing, triggered := *ca.Phase == corev1beta1.RotationCompleting, *ca.CompletionTriggered
	if !awaitsManualUpdates(shoot, *ca.Phase) {
		ca.Advance(now)
	}
	if completing && controlplanenamespace.FailureTolerance(shoot) != "" {
		*ca.CompletionTriggered = triggered // until one more run, after which the members of etcd do not trust the old CAs any more
	}
	if !awaitsManualUpdates(shoot, *account.Phase) {
		account.Advance(now)
	}
	encryption.Advance(now)
	if e := c.Rotation.ETCDEncryptionKey; e.Phase == corev1beta1.RotationPrepared && ptr.Deref(e.AutoCompleteAfterPrepared, false) {
		encryption.Complete(now)
	}
	if e := c.Rotation.ETCDEncryptionKey; e.Phase == corev1beta1.RotationCompleted {
		e.AutoCompleteAfterPrepared = nil
	}
	if ssh := c.Rotation.SSHKeypair; ssh != nil && ssh.LastInitiationTime != nil && (ssh.LastCompletionTime == nil || ssh.LastCompletionTime.Before(ssh.LastInitiationTime)) {
		ssh.LastCompletionTime = &now
	}
	if o := c.Rotation.Observability; o != nil && o.LastInitiationTime != nil && (o.LastCompletionTime == nil || o.LastCompletionTime.Before(o.LastInitiationTime)) {
		o.LastCompletionTime = &now
	}
	removeEmpty(c, shoot)
}

// awaitsManualUpdates reports whether a rotation is not prepared yet, as nodes have the former credentials that the user has not selected for their update
// in place.
func awaitsManualUpdates(shoot *corev1beta1.Shoot, phase corev1beta1.CredentialsRotationPhase) bool {
	return len(shoot.Status.ManualUpdatesPending()) > 0 && (phase == corev1beta1.RotationPreparing || phase == corev1beta1.RotationWaitingForWorkersRollout)
}

// removeEmpty removes credentials from a status that have nothing in them.
func removeEmpty(c *corev1beta1.ShootCredentials, shoot *corev1beta1.Shoot) {
	removeUnbegun(c)
	if c.Rotation == nil && c.EncryptionAtRest == nil {
		shoot.Status.Credentials = nil
	}
}

func rotateSSH(c *corev1beta1.ShootCredentials, shoot *corev1beta1.Shoot, now metav1.Time) {
	if !shoot.Spec.Provider.SSHAccessEnabled() {
		return
	}
	if c.Rotation.SSHKeypair == nil {
		c.Rotation.SSHKeypair = &corev1beta1.ShootSSHKeypairRotation{}
	}
	c.Rotation.SSHKeypair.LastInitiationTime = &now
}

func rotateObservability(c *corev1beta1.ShootCredentials, now metav1.Time) {
	if c.Rotation.Observability == nil {
		c.Rotation.Observability = &corev1beta1.ObservabilityRotation{}
	}
	c.Rotation.Observability.LastInitiationTime = &now
}

// removeDeletedPools removes pools that do not exist any more from those whose rollout is pending.
func removeDeletedPools(p rotation.Phased, pools []corev1beta1.Worker) {
	*p.Pending = slices.DeleteFunc(*p.Pending, func(pending corev1beta1.PendingWorkersRollout) bool {
		return !slices.ContainsFunc(pools, func(pool corev1beta1.Worker) bool { return pool.Name == pending.Name })
	})
	if len(*p.Pending) == 0 {
		*p.Pending = nil
	}
}

// rollOut records since when the machines of pools are to be replaced. The time stays in the status, as it is part of the hash of a pool. The
// names are separated by commas; "*" means all.
func rollOut(shoot *corev1beta1.Shoot, names string, now metav1.Time) {
	var recorded []corev1beta1.PendingWorkersRollout
	if m := shoot.Status.ManualWorkerPoolRollout; m != nil {
		recorded = m.PendingWorkersRollouts
	}
	chosen := strings.Split(names, ",")
	var list []corev1beta1.PendingWorkersRollout
	for _, pool := range shoot.Spec.Provider.Workers {
		at := observed.InitiationTime(pool.Name, nil, recorded)
		if names == "*" || slices.Contains(chosen, pool.Name) {
			at = &now
		}
		if at != nil {
			list = append(list, corev1beta1.PendingWorkersRollout{Name: pool.Name, LastInitiationTime: at})
		}
	}
	if len(list) > 0 {
		shoot.Status.ManualWorkerPoolRollout = &corev1beta1.ManualWorkerPoolRollout{PendingWorkersRollouts: list}
	}
}

// rolledOut removes pools from those whose rollout is pending: the flow replaces their machines. The names are separated by commas; "*"
// means all.
func rolledOut(p rotation.Phased, pools string) {
	names := strings.Split(pools, ",")
	*p.Pending = slices.DeleteFunc(*p.Pending, func(pending corev1beta1.PendingWorkersRollout) bool {
		return pools == "*" || slices.Contains(names, pending.Name)
	})
	if len(*p.Pending) == 0 {
		*p.Pending = nil
	}
}
