package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

// seedTimeout is how long gardenlets may take to do an operation.
const seedTimeout = 10 * time.Minute

// seedTasks have gardenlets renew what they have of the garden, while its credentials are rotated.
func (s *state) seedTasks() []flow.Task {
	var tasks []flow.Task
	after := []string{"gardener-apiserver-ready", "kube-controller-manager-ready"}
	if s.publishesIdentityKey() {
		after = append(after, identityKeyTask)
	}
	// One after the other, as a Seed can have one operation at a time.
	for _, operation := range s.seedOperations() {
		task := flow.Await(seedTimeout, "seeds-"+operation, "Waiting until gardenlets have done operation "+operation, func(ctx context.Context) error {
			return s.operateSeeds(ctx, operation)
		}, after...)
		tasks, after = append(tasks, task), append(after, task.ID)
	}
	return tasks
}

// seedOperations are the operations that Seeds get in this run.
func (s *state) seedOperations() []string {
	var operations []string
	if s.source.PreparesServiceAccountKey() {
		operations = append(operations, constants.SeedOperationRenewGardenAccessSecrets)
	}
	c := s.garden.Status.Credentials
	if c == nil || c.Rotation == nil {
		return operations
	}
	if s.source.PreparesWorkloadIdentityKey() {
		operations = append(operations, constants.SeedOperationRenewWorkloadIdentityTokens)
	}
	if ca := c.Rotation.CertificateAuthorities; ca != nil && ca.Phase == corev1beta1.RotationPreparing {
		operations = append(operations, constants.GardenerOperationRenewKubeconfig)
	}
	return operations
}

// operateSeeds requests an operation from all gardenlets, and waits until they have done it. The error names the Seeds whose gardenlets have not.
func (s *state) operateSeeds(ctx context.Context, operation string) error {
	virtual, err := s.run.Target.Client(ctx)
	if err != nil {
		return err
	}
	ignored := kube.SplitAnnotation(s.garden.Annotations[ignoredSeeds], ",")
	started := s.rotationStarted(operation)
	if err := requestOfSeeds(ctx, virtual, ignored, operation, started); err != nil {
		return err
	}
	if operation == constants.GardenerOperationRenewKubeconfig {
		if err := s.renewSelfHosted(ctx, virtual); err != nil {
			return err
		}
	}
	return kube.Await(ctx, virtual, &corev1beta1.SeedList{}, func(seeds []*corev1beta1.Seed) error {
		return seedsDone(seeds, ignored, operation, started)
	}, nil)
}

// requestOfSeeds requests an operation from all gardenlets. Those whose Seed has another operation get it when they have begun that one.
func requestOfSeeds(ctx context.Context, virtual client.WithWatch, ignored []string, operation, started string) error {
	var requested []string // the next list may be older than what was written
	for {
		var free []*corev1beta1.Seed
		if err := kube.Await(ctx, virtual, &corev1beta1.SeedList{}, func(seeds []*corev1beta1.Seed) (err error) {
			free, err = freeSeeds(seeds, slices.Concat(ignored, requested), operation, started)
			return err
		}, nil); err != nil {
			return err
		}
		if len(free) == 0 {
			return nil
		}
		for _, seed := range free {
			if err := kube.PatchMetadata(ctx, virtual, seed, func(o *metav1.PartialObjectMetadata) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, operation)
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, requestedFor(operation), started)
				if operation == constants.GardenerOperationRenewKubeconfig {
					metav1.SetMetaDataAnnotation(&o.ObjectMeta, formerCertificate, certificateOf(seed))
				}
			}); err != nil {
				return err
			}
			requested = append(requested, seed.Name)
		}
	}
}

// freeSeeds returns the Seeds from which an operation can be requested now: those without another one, which would be lost. Each operation reconciles the Seed,
// too, so that "reconcile" is overwritten. If there are none, the error names the Seeds that have another operation.
func freeSeeds(seeds []*corev1beta1.Seed, without []string, operation, started string) ([]*corev1beta1.Seed, error) {
	var free []*corev1beta1.Seed
	var busy []string
	for _, seed := range seeds {
		// A run that was interrupted has requested it before: the annotation says for which rotation.
		if seed.Annotations[requestedFor(operation)] == started || slices.Contains(without, seed.Name) {
			continue
		}
		switch other := seed.Annotations[constants.GardenerOperation]; other {
		case "", constants.GardenerOperationReconcile:
			free = append(free, seed)
		default:
			busy = append(busy, fmt.Sprintf("%s (%s)", seed.Name, other))
		}
	}
	if len(free) > 0 || len(busy) == 0 {
		return free, nil
	}
	slices.Sort(busy)
	return nil, fmt.Errorf("gardenlets of %d Seeds have not begun another operation, and get operation %s after it: %s; to go on without Seeds that are lost, list them in annotation %s of the Garden",
		len(busy), operation, strings.Join(busy[:min(len(busy), 10)], ", "), ignoredSeeds)
}

// seedsDone returns an error that names the Seeds whose gardenlets have not done an operation that was requested for the rotation that was started at a
// time.
func seedsDone(seeds []*corev1beta1.Seed, ignored []string, operation, started string) error {
	var waiting []string
	for _, seed := range seeds {
		if seed.Annotations[requestedFor(operation)] == started && !slices.Contains(ignored, seed.Name) && !operated(seed, operation) {
			waiting = append(waiting, seed.Name)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	slices.Sort(waiting)
	return fmt.Errorf("gardenlets of %d Seeds have not done operation %s: %s; to go on without Seeds that are lost, list them in annotation %s of the Garden",
		len(waiting), operation, strings.Join(waiting[:min(len(waiting), 10)], ", "), ignoredSeeds)
}

// operated is whether the gardenlet of a Seed has done an operation that was requested: the annotation is gone. A new kubeconfig is requested then, but
// not in use: the Seed has the end of its certificate, unless its gardenlet does not know one.
func operated(seed *corev1beta1.Seed, operation string) bool {
	if seed.Annotations[constants.GardenerOperation] == operation {
		return false
	}
	former := seed.Annotations[formerCertificate]
	return operation != constants.GardenerOperationRenewKubeconfig || former == "" || certificateOf(seed) != former
}

// certificateOf is the end of the client certificate of a gardenlet, or empty if the Seed does not have it.
func certificateOf(seed *corev1beta1.Seed) string {
	until := seed.Status.ClientCertificateExpirationTimestamp
	if until == nil {
		return ""
	}
	return until.UTC().Format(time.RFC3339)
}

// formerCertificate is the annotation of a Seed with the end of the client certificate that its gardenlet had when a new kubeconfig was requested.
const formerCertificate = "operator.gardener.cloud/former-certificate-until"

// ignoredSeeds is the annotation of a Garden with the names of Seeds, separated by commas, that a rotation does not wait for. Their gardenlets need new
// credentials when it is completed.
const ignoredSeeds = "operator.gardener.cloud/ignored-seeds"

// requestedFor is the annotation of a Seed with the start of the rotation for which it was given an operation.
func requestedFor(operation string) string { return "operator.gardener.cloud/requested-" + operation }

// rotationStarted is when the rotation was started that an operation of seeds is for.
func (s *state) rotationStarted(operation string) string {
	r, at := s.garden.Status.Credentials.Rotation, (*metav1.Time)(nil)
	switch operation {
	case constants.SeedOperationRenewGardenAccessSecrets:
		at = r.ServiceAccountKey.LastInitiationTime
	case constants.SeedOperationRenewWorkloadIdentityTokens:
		at = r.WorkloadIdentityKey.LastInitiationTime
	case constants.GardenerOperationRenewKubeconfig:
		at = r.CertificateAuthorities.LastInitiationTime
	}
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// renewSelfHosted requests new kubeconfigs from the gardenlets of self-hosted shoots, which have no Seed.
func (s *state) renewSelfHosted(ctx context.Context, virtual client.Client) error {
	gardenlets := &seedmanagementv1alpha1.GardenletList{}
	if err := virtual.List(ctx, gardenlets); err != nil {
		return fmt.Errorf("list Gardenlets: %w", err)
	}
	for i := range gardenlets.Items {
		if g := &gardenlets.Items[i]; strings.HasPrefix(g.Name, "self-hosted-shoot-") {
			if err := kube.PatchMetadata(ctx, virtual, g, func(o *metav1.PartialObjectMetadata) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationRenewKubeconfig)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
