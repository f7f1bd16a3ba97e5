package core

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// maintenanceOperations can be combined.
var maintenanceOperations = []string{
	constants.GardenerOperationReconcile,
	constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout, constants.OperationRotateCredentialsComplete,
	constants.OperationRotateCAStart, constants.OperationRotateCAStartWithoutWorkersRollout, constants.OperationRotateCAComplete,
	constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout, constants.OperationRotateServiceAccountKeyComplete,
	constants.OperationRotateETCDEncryptionKey, constants.OperationRotateETCDEncryptionKeyStart, constants.OperationRotateETCDEncryptionKeyComplete,
	constants.OperationRotateObservabilityCredentials, constants.OperationRotateSSHKeypair,
	constants.OperationRotateRolloutWorkers, constants.OperationRolloutWorkers,
}

// shootOperationNames are all operations, for now or for the next maintenance time window.
var shootOperationNames = append([]string{
	constants.ShootOperationMaintain, constants.ShootOperationRetry, constants.ShootOperationForceInPlaceUpdate,
}, maintenanceOperations...)

// awakeOperations need a running control plane.
var awakeOperations = []string{
	constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout, constants.OperationRotateCredentialsComplete,
	constants.OperationRotateETCDEncryptionKey, constants.OperationRotateETCDEncryptionKeyStart, constants.OperationRotateETCDEncryptionKeyComplete,
	constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout, constants.OperationRotateServiceAccountKeyComplete,
	constants.OperationRolloutWorkers,
}

// incompatibleOperations contradict each other.
var incompatibleOperations = map[string][]string{
	constants.OperationRotateCredentialsStart: {
		constants.OperationRotateCAStartWithoutWorkersRollout, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
		constants.OperationRotateCredentialsStartWithoutWorkersRollout,
	},
	constants.OperationRotateCredentialsStartWithoutWorkersRollout: {constants.OperationRotateCAStart, constants.OperationRotateServiceAccountKeyStart},
	constants.OperationRotateCAStart:                               {constants.OperationRotateCAStartWithoutWorkersRollout},
	constants.OperationRotateServiceAccountKeyStart:                {constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout},
	constants.OperationRotateETCDEncryptionKey:                     {constants.OperationRotateETCDEncryptionKeyStart},
}

// rotatedByAll are operations that each start of the rotation of all credentials includes.
var rotatedByAll = []string{
	constants.OperationRotateETCDEncryptionKey, constants.OperationRotateETCDEncryptionKeyStart,
	constants.OperationRotateObservabilityCredentials, constants.OperationRotateSSHKeypair,
}

// coveredOperations are those that are part of another one.
var coveredOperations = map[string][]string{
	constants.OperationRotateCredentialsStart: append([]string{
		constants.OperationRotateCAStart, constants.OperationRotateServiceAccountKeyStart,
	}, rotatedByAll...),
	constants.OperationRotateCredentialsStartWithoutWorkersRollout: append([]string{
		constants.OperationRotateCAStartWithoutWorkersRollout, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
	}, rotatedByAll...),
	constants.OperationRotateCredentialsComplete: {
		constants.OperationRotateCAComplete, constants.OperationRotateServiceAccountKeyComplete, constants.OperationRotateETCDEncryptionKeyComplete,
	},
}

// CoveredOperation reports whether an operation is part of another one of an annotation.
func CoveredOperation(annotation, operation string) bool {
	for other := range strings.SplitSeq(annotation, constants.OperationsSeparator) {
		if slices.Contains(coveredOperations[strings.TrimSpace(other)], strings.TrimSpace(operation)) {
			return true
		}
	}
	return false
}

// WithoutCoveredOperations returns an annotation without the operations that are part of another one of it.
func WithoutCoveredOperations(annotation string) string {
	operations := strings.Split(annotation, constants.OperationsSeparator)
	left := slices.DeleteFunc(slices.Clone(operations), func(operation string) bool { return CoveredOperation(annotation, operation) })
	if len(left) == len(operations) {
		return annotation
	}
	return strings.Join(left, constants.OperationsSeparator)
}

// operation is one operation of an annotation, with the pools that follow after "=".
type operation struct {
	name     string
	pools    []string
	hasPools bool
}

func parseOperations(value string) []operation {
	var out []operation
	seen := map[string]bool{}
	for _, text := range strings.Split(value, constants.OperationsSeparator) {
		text = strings.TrimSpace(text)
		if seen[text] {
			continue
		}
		seen[text] = true
		name, pools, ok := strings.Cut(text, "=")
		if name != constants.OperationRotateRolloutWorkers && name != constants.OperationRolloutWorkers {
			out = append(out, operation{name: text})
			continue
		}
		out = append(out, operation{name: name, pools: strings.Split(pools, ","), hasPools: ok})
	}
	return out
}

// shootOperations checks the annotations with operations.
func shootOperations(shoot *corev1beta1.Shoot, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	now, later := shoot.Annotations[constants.GardenerOperation], shoot.Annotations[constants.GardenerMaintenanceOperation]
	if now != "" {
		errs = append(errs, ValidateShootOperations(shoot, now, path.Key(constants.GardenerOperation))...)
	}
	if later != "" {
		errs = append(errs, ValidateShootOperations(shoot, later, path.Key(constants.GardenerMaintenanceOperation))...)
	}
	if now != "" && now == later {
		errs = append(errs, field.Forbidden(path.Key(constants.GardenerMaintenanceOperation), "is a duplicate"))
	}
	return errs
}

// ValidateShootOperations checks operations for the annotation, separated by semicolons.
func ValidateShootOperations(shoot *corev1beta1.Shoot, value string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	operations := parseOperations(value)
	if len(operations) == 1 && operations[0].name == "" {
		return nil
	}
	if len(operations) > 1 {
		for _, op := range operations {
			switch {
			case slices.Contains(maintenanceOperations, op.name):
			case slices.Contains(shootOperationNames, op.name):
				return field.ErrorList{field.Forbidden(path, op.name+" is only possible alone")}
			default:
				return field.ErrorList{field.NotSupported(path, op.name, shootOperationNames)}
			}
		}
	} else if !slices.Contains(shootOperationNames, operations[0].name) {
		return field.ErrorList{field.NotSupported(path, operations[0].name, shootOperationNames)}
	}
	for i, op := range operations {
		for j, other := range operations {
			if i != j && slices.Contains(incompatibleOperations[op.name], other.name) {
				errs = append(errs, field.Forbidden(path, op.name+" contradicts "+other.name))
			}
		}
		errs = append(errs, operationPossible(shoot, op, path)...)
	}
	return errs
}

// operationPossible checks an operation against the state of the shoot.
func operationPossible(shoot *corev1beta1.Shoot, op operation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	forbid := func(reason string) { errs = append(errs, field.Forbidden(path, op.name+": "+reason)) }

	hibernated := shoot.HibernationWanted() || shoot.Status.Hibernated
	if waitsForUpdates(op.name) && shoot.Status.AnyUpdatePending() {
		forbid("nodes are still being updated in place")
	}
	if hibernated && slices.Contains(awakeOperations, op.name) {
		forbid("is not possible while the cluster is hibernated")
	}
	rotation := &corev1beta1.ShootCredentialsRotation{}
	if shoot.Status.Credentials != nil && shoot.Status.Credentials.Rotation != nil {
		rotation = shoot.Status.Credentials.Rotation
	}
	var ca, serviceAccount, etcd corev1beta1.CredentialsRotationPhase
	if rotation.CertificateAuthorities != nil {
		ca = rotation.CertificateAuthorities.Phase
	}
	if rotation.ServiceAccountKey != nil {
		serviceAccount = rotation.ServiceAccountKey.Phase
	}
	if rotation.ETCDEncryptionKey != nil {
		etcd = rotation.ETCDEncryptionKey.Phase
	}
	idle := func(phase corev1beta1.CredentialsRotationPhase) bool {
		return phase == "" || phase == corev1beta1.RotationCompleted
	}
	prepared := func(phase corev1beta1.CredentialsRotationPhase) bool { return phase == corev1beta1.RotationPrepared }
	startable := startable(shoot)
	etcdInTwoSteps := parseVersion(shoot.Spec.Kubernetes.Version).below(1, 34)

	switch op.name {
	case constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout:
		if !startable {
			forbid("needs a cluster that was created")
		}
		if !idle(ca) || !idle(serviceAccount) || !idle(etcd) {
			forbid("a rotation is in progress")
		}
		if op.name == constants.OperationRotateCredentialsStart && encryptionChanges(shoot) {
			forbid("the encryption configuration is being changed")
		}
	case constants.OperationRotateCredentialsComplete:
		if !prepared(ca) || !prepared(serviceAccount) || etcdInTwoSteps && !prepared(etcd) {
			forbid("not all rotations are prepared")
		}
	case constants.OperationRotateCAStart, constants.OperationRotateCAStartWithoutWorkersRollout:
		if !startable {
			forbid("needs a cluster that was created")
		}
		if !idle(ca) {
			forbid("the rotation is in progress")
		}
	case constants.OperationRotateCAComplete:
		if !prepared(ca) {
			forbid("the rotation is not prepared")
		}
	case constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout:
		if !startable {
			forbid("needs a cluster that was created")
		}
		if !idle(serviceAccount) {
			forbid("the rotation is in progress")
		}
	case constants.OperationRotateServiceAccountKeyComplete:
		if !prepared(serviceAccount) {
			forbid("the rotation is not prepared")
		}
	case constants.OperationRotateETCDEncryptionKey, constants.OperationRotateETCDEncryptionKeyStart:
		if op.name == constants.OperationRotateETCDEncryptionKeyStart && !etcdInTwoSteps {
			forbid("is not possible from Kubernetes 1.34; use rotate-etcd-encryption-key")
		}
		if !startable {
			forbid("needs a cluster that was created")
		}
		if !idle(etcd) {
			forbid("the rotation is in progress")
		}
		if encryptionChanges(shoot) {
			forbid("the encryption configuration is being changed")
		}
	case constants.OperationRotateETCDEncryptionKeyComplete:
		if !etcdInTwoSteps {
			forbid("is not possible from Kubernetes 1.34")
		}
		if !prepared(etcd) {
			forbid("the rotation is not prepared")
		}
	case constants.OperationRotateRolloutWorkers, constants.OperationRolloutWorkers:
		errs = append(errs, rolloutPools(shoot, op, path)...)
		waiting := corev1beta1.RotationWaitingForWorkersRollout
		if op.name == constants.OperationRotateRolloutWorkers && ca != waiting && serviceAccount != waiting {
			forbid("no rotation waits for machines to be replaced")
		}
	}
	return errs
}

// startable reports whether a rotation can start: the creation of the cluster has succeeded.
func startable(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	if last == nil {
		return false
	}
	return last.Type == corev1beta1.LastOperationTypeCreate && last.State == corev1beta1.LastOperationStateSucceeded ||
		last.Type == corev1beta1.LastOperationTypeRestore && last.State == corev1beta1.LastOperationStateSucceeded ||
		last.Type == corev1beta1.LastOperationTypeReconcile
}

// encryptionChanges reports whether the data in etcd is not yet encrypted as in the spec.
func encryptionChanges(shoot *corev1beta1.Shoot) bool {
	return shoot.Status.Credentials != nil && shoot.Status.Credentials.EncryptionAtRest != nil &&
		!sameSet(encryptedResources(&shoot.Spec), shoot.Status.Credentials.EncryptionAtRest.Resources)
}

// rolloutPools checks the pools that follow after "=".
func rolloutPools(shoot *corev1beta1.Shoot, op operation, path *field.Path) field.ErrorList {
	if !op.hasPools {
		return field.ErrorList{field.Invalid(path, op.name, "must be followed by = and the names of pools")}
	}
	var errs field.ErrorList
	if slices.Equal(op.pools, []string{"*"}) && op.name == constants.OperationRolloutWorkers {
		return nil
	}
	for i, pool := range op.pools {
		if pool == "" {
			errs = append(errs, field.Required(path, "names of pools must not be empty"))
		}
		if slices.Contains(op.pools[:i], pool) {
			errs = append(errs, field.Duplicate(path, pool))
		}
		if !slices.ContainsFunc(shoot.Spec.Provider.Workers, func(w corev1beta1.Worker) bool { return w.Name == pool }) {
			errs = append(errs, field.Invalid(path, pool, "is not a pool of this cluster"))
		}
	}
	return errs
}
