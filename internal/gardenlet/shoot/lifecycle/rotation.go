package lifecycle

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// phased is what rotations with two steps have in common: old and new are both good between their start and their completion.
type phased struct {
	phase                                            *corev1beta1.CredentialsRotationPhase
	initiated, prepared, completionOrdered, complete **metav1.Time
	pending                                          *[]corev1beta1.PendingWorkersRollout
}

// rotations returns those of a status, which it fills with empty ones as needed.
func rotations(c *corev1beta1.ShootCredentials) (ca, account, encryption phased) {
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
	a, s, e := r.CertificateAuthorities, r.ServiceAccountKey, r.ETCDEncryptionKey
	ca = phased{
		&a.Phase, &a.LastInitiationTime, &a.LastInitiationFinishedTime, &a.LastCompletionTriggeredTime,
		&a.LastCompletionTime, &a.PendingWorkersRollouts,
	}
	account = phased{
		&s.Phase, &s.LastInitiationTime, &s.LastInitiationFinishedTime, &s.LastCompletionTriggeredTime,
		&s.LastCompletionTime, &s.PendingWorkersRollouts,
	}
	encryption = phased{
		&e.Phase, &e.LastInitiationTime, &e.LastInitiationFinishedTime, &e.LastCompletionTriggeredTime, &e.LastCompletionTime, nil,
	}
	return ca, account, encryption
}

// dropEmpty removes the rotations that never began.
func dropEmpty(c *corev1beta1.ShootCredentials) {
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

func (p phased) start(now metav1.Time, to corev1beta1.CredentialsRotationPhase, waiting ...corev1beta1.Worker) {
	if *p.phase != "" && *p.phase != corev1beta1.RotationCompleted {
		return // one after the other
	}
	if p.pending != nil {
		*p.pending = nil
		for _, pool := range waiting { // until it is rolled out, its machines are those of the rotation before
			*p.pending = append(*p.pending, corev1beta1.PendingWorkersRollout{Name: pool.Name, LastInitiationTime: *p.initiated})
		}
	}
	*p.phase, *p.initiated, *p.prepared, *p.completionOrdered = to, &now, nil, nil
}

func (p phased) finalize(now metav1.Time) {
	if *p.phase == corev1beta1.RotationPrepared {
		*p.phase, *p.completionOrdered = corev1beta1.RotationCompleting, &now
	}
}

// advance is what the end of a flow means: what was begun is done.
func (p phased) advance(now metav1.Time) {
	switch *p.phase {
	case corev1beta1.RotationPreparing:
		*p.phase, *p.prepared = corev1beta1.RotationPrepared, &now
	case corev1beta1.RotationPreparingWithoutWorkersRollout, corev1beta1.RotationWaitingForWorkersRollout:
		*p.phase = corev1beta1.RotationWaitingForWorkersRollout
		if p.pending == nil || len(*p.pending) == 0 {
			*p.phase, *p.prepared = corev1beta1.RotationPrepared, &now
		}
	case corev1beta1.RotationCompleting:
		*p.phase, *p.complete, *p.prepared, *p.completionOrdered = corev1beta1.RotationCompleted, &now, nil, nil
	case corev1beta1.RotationCompleted:
		*p.completionOrdered = nil
	case corev1beta1.RotationPrepared:
	}
}

// order puts into a status what the operations of an annotation ask for. It returns what is left of the annotation: what is for others.
func order(shoot *corev1beta1.Shoot, now metav1.Time) (left string) {
	if shoot.Status.Credentials == nil {
		shoot.Status.Credentials = &corev1beta1.ShootCredentials{}
	}
	c := shoot.Status.Credentials
	ca, account, encryption := rotations(c)
	pools, withoutRollout := shoot.Spec.Provider.Workers, corev1beta1.RotationPreparingWithoutWorkersRollout
	if len(pools) == 0 {
		withoutRollout = corev1beta1.RotationPreparing // there are none to wait for
	}
	var rest []string
	for _, operation := range kube.SplitAnnotation(shoot.Annotations[constants.GardenerOperation], constants.OperationsSeparator) {
		base, names, _ := strings.Cut(operation, "=")
		switch base {
		case constants.GardenerOperationReconcile, constants.ShootOperationRetry:
		case constants.OperationRotateCredentialsStart:
			ca.start(now, corev1beta1.RotationPreparing)
			account.start(now, corev1beta1.RotationPreparing)
			encryption.start(now, corev1beta1.RotationPreparing)
			rotateSSH(c, shoot, now)
			rotateObservability(c, now)
		case constants.OperationRotateCredentialsStartWithoutWorkersRollout:
			ca.start(now, withoutRollout, pools...)
			account.start(now, withoutRollout, pools...)
			encryption.start(now, corev1beta1.RotationPreparing)
			rotateSSH(c, shoot, now)
			rotateObservability(c, now)
		case constants.OperationRotateCredentialsComplete:
			ca.finalize(now)
			account.finalize(now)
			encryption.finalize(now)
		case constants.OperationRotateCAStart:
			ca.start(now, corev1beta1.RotationPreparing)
		case constants.OperationRotateCAStartWithoutWorkersRollout:
			ca.start(now, withoutRollout, pools...)
		case constants.OperationRotateCAComplete:
			ca.finalize(now)
		case constants.OperationRotateServiceAccountKeyStart:
			account.start(now, corev1beta1.RotationPreparing)
		case constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout:
			account.start(now, withoutRollout, pools...)
		case constants.OperationRotateServiceAccountKeyComplete:
			account.finalize(now)
		case constants.OperationRotateETCDEncryptionKey:
			encryption.start(now, corev1beta1.RotationPreparing)
			c.Rotation.ETCDEncryptionKey.AutoCompleteAfterPrepared = new(true)
		case constants.OperationRotateETCDEncryptionKeyStart:
			encryption.start(now, corev1beta1.RotationPreparing)
		case constants.OperationRotateETCDEncryptionKeyComplete:
			encryption.finalize(now)
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
			rest = append(rest, operation)
		}
	}
	settle(c, shoot)
	return strings.Join(rest, constants.OperationsSeparator)
}

// finish puts into a status what the end of a flow means for rotations.
func finish(shoot *corev1beta1.Shoot, now metav1.Time) {
	c := shoot.Status.Credentials
	if c == nil || c.Rotation == nil {
		return
	}
	ca, account, encryption := rotations(c)
	forget(ca, shoot.Spec.Provider.Workers)
	forget(account, shoot.Spec.Provider.Workers)
	completing, ordered := *ca.phase == corev1beta1.RotationCompleting, *ca.completionOrdered
	ca.advance(now)
	if completing && tolerance(shoot) != "" {
		*ca.completionOrdered = ordered // until one more run has made the members of etcd forget the old authorities
	}
	account.advance(now)
	encryption.advance(now)
	if e := c.Rotation.ETCDEncryptionKey; e.Phase == corev1beta1.RotationPrepared && deref(e.AutoCompleteAfterPrepared) {
		encryption.finalize(now)
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
	settle(c, shoot)
}

// settle leaves nothing empty behind.
func settle(c *corev1beta1.ShootCredentials, shoot *corev1beta1.Shoot) {
	dropEmpty(c)
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

// forget takes pools off the list of those that wait that are no more.
func forget(p phased, pools []corev1beta1.Worker) {
	*p.pending = slices.DeleteFunc(*p.pending, func(pending corev1beta1.PendingWorkersRollout) bool {
		return !slices.ContainsFunc(pools, func(pool corev1beta1.Worker) bool { return pool.Name == pending.Name })
	})
	if len(*p.pending) == 0 {
		*p.pending = nil
	}
}

// rotatedFor is when credentials were rotated that the machines of a pool hold.
func rotatedFor(pool string, initiated *metav1.Time, pending []corev1beta1.PendingWorkersRollout) *metav1.Time {
	if i := slices.IndexFunc(pending, func(p corev1beta1.PendingWorkersRollout) bool { return p.Name == pool }); i >= 0 {
		return pending[i].LastInitiationTime
	}
	return initiated
}

// rollOut notes when the machines of pools were to be replaced. The note stays: machines are those that were wanted then. The names are
// separated by commas; "*" means all.
func rollOut(shoot *corev1beta1.Shoot, names string, now metav1.Time) {
	var noted []corev1beta1.PendingWorkersRollout
	if m := shoot.Status.ManualWorkerPoolRollout; m != nil {
		noted = m.PendingWorkersRollouts
	}
	chosen := strings.Split(names, ",")
	var list []corev1beta1.PendingWorkersRollout
	for _, pool := range shoot.Spec.Provider.Workers {
		at := rotatedFor(pool.Name, nil, noted)
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

// rolledOut takes pools off the list of those that wait: the flow rolls them out. The names are separated by commas; "*" means all.
func rolledOut(p phased, pools string) {
	names := strings.Split(pools, ",")
	*p.pending = slices.DeleteFunc(*p.pending, func(pending corev1beta1.PendingWorkersRollout) bool {
		return pools == "*" || slices.Contains(names, pending.Name)
	})
	if len(*p.pending) == 0 {
		*p.pending = nil
	}
}
