package system

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/credentials"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// flowTimeout is the end of one run of the flow.
	flowTimeout = 5 * time.Minute
	// checkAgainAfter is when a deleted Seed is checked again that waits for the deletion of other objects. Not all of them are watched.
	checkAgainAfter = 15 * time.Second
	// fieldManager owns the fields of what the flow applies, and its Secrets with certificates.
	fieldManager = "gardenlet"
)

type reconciler struct {
	Values
	gardenCache client.Client
}

// Reconcile runs the flow for a Seed, or the deletion flow for a deleted one.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if seed.DeletionTimestamp != nil {
		return r.delete(ctx, seed)
	}
	if err := kube.AddFinalizer(ctx, r.gardenCache, seed, constants.FinalizerGardenerName); err != nil {
		return kube.Result(err)
	}
	if operation := seed.Annotations[constants.GardenerOperation]; operation != "" {
		if err := r.operate(ctx, seed, operation); err != nil {
			return kube.Result(err)
		}
	}
	status := &statusReporter{gardenCache: r.gardenCache, clock: r.Clock, seed: seed, reportsProgress: unfinished(seed, r.Gardener)}
	f, observed, err := r.prepare(ctx, seed)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, status.failed(ctx, err))
	}
	if err := status.run(ctx, f, r.Metrics); err != nil {
		return kube.Result(errors.Join(err, status.failed(ctx, err)))
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, status.succeeded(ctx, observed)
}

// prepare reads what the flow and the status need.
func (r *reconciler) prepare(ctx context.Context, seed *corev1beta1.Seed) (*flow.Flow, *observed, error) {
	extensions, err := r.observeExtensions(ctx, seed)
	if err != nil {
		return nil, nil, err
	}
	hostsGarden, err := HostsGarden(ctx, r.SeedAPI)
	if err != nil {
		return nil, nil, err
	}
	f, err := r.newFlow(seed, extensions, hostsGarden)
	if err != nil {
		return nil, nil, err
	}
	observed, err := r.observe(ctx, seed)
	return f, observed, err
}

// operate runs the operation that an annotation of the Seed names, and removes the annotation.
func (r *reconciler) operate(ctx context.Context, seed *corev1beta1.Seed, operation string) error {
	log := logf.FromContext(ctx)
	switch operation {
	case constants.GardenerOperationRenewKubeconfig:
		if r.KubeconfigSecret == nil {
			log.Info("Ignoring operation as the gardenlet does not renew its kubeconfig", "operation", operation)
			break
		}
		log.Info("Requesting a new client certificate for the garden")
		if err := credentials.RequestRenewal(ctx, r.SeedAPI, *r.KubeconfigSecret); err != nil {
			return err
		}
	case constants.SeedOperationRenewGardenAccessSecrets:
		log.Info("Requesting new tokens for the garden")
		if err := r.renewTokens(ctx, resourcesv1alpha1.ServiceAccountTokenRenewTimestamp, client.MatchingLabels{
			resourcesv1alpha1.ResourceManagerClass:   resourcesv1alpha1.ResourceManagerClassGarden,
			resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
		}); err != nil {
			return err
		}
	case constants.SeedOperationRenewWorkloadIdentityTokens:
		log.Info("Requesting new tokens of WorkloadIdentities")
		if err := r.renewTokens(ctx, securityv1alpha1.AnnotationWorkloadIdentityTokenRenewTimestamp, client.MatchingLabels{
			securityv1alpha1.LabelPurpose: securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor,
		}); err != nil {
			return err
		}
	case constants.GardenerOperationReconcile:
	default:
		return nil // another controller's operation
	}
	return kube.PatchMetadata(ctx, r.gardenCache, seed, func(o *metav1.PartialObjectMetadata) {
		delete(o.Annotations, constants.GardenerOperation)
	})
}

// renewTokens removes the annotation with the time until which a token requestor does not renew the token in a Secret, from all Secrets with
// labels. It reads no tokens.
func (r *reconciler) renewTokens(ctx context.Context, renewTimestamp string, labels client.MatchingLabels) error {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.SeedAPI.List(ctx, secrets, labels); err != nil {
		return fmt.Errorf("list Secrets with tokens: %w", err)
	}
	var errs []error
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		errs = append(errs, client.IgnoreNotFound(kube.PatchMetadata(ctx, r.SeedAPI, secret, func(o *metav1.PartialObjectMetadata) {
			delete(o.Annotations, renewTimestamp)
		})))
	}
	return errors.Join(errs...)
}

// oldestKubernetes is the first version of Kubernetes that a seed may have. Source: fleet.md 8.2.
var oldestKubernetes = version.MustParseGeneric("1.32")

// observe reads what the status of a Seed has besides the operation. A seed that is too old is an error.
func (r *reconciler) observe(ctx context.Context, seed *corev1beta1.Seed) (*observed, error) {
	info, err := r.SeedVersion.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read version of the seed: %w", err)
	}
	kubernetes, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("version of the seed: %w", err)
	}
	if kubernetes.LessThan(oldestKubernetes) {
		return nil, fmt.Errorf("the seed has Kubernetes %s, and needs %s at least: update it", info.GitVersion, oldestKubernetes)
	}
	o := &observed{
		gardener: r.Gardener, version: info.GitVersion, capacity: r.Capacity, allocatable: allocatable(r.Capacity, r.Reserved),
		generation: seed.Generation, expiry: r.CertificateExpiry,
	}
	if garden, err := identity(ctx, r.GardenAPI); err != nil {
		return nil, fmt.Errorf("garden: %w", err)
	} else if garden.Data[constants.ClusterIdentity] != "" {
		o.identity = seedIdentity(garden.Data[constants.ClusterIdentity], seed.Name)
	}
	// A seed that is a shoot, or the cluster of the garden, has the identity of that.
	current, err := identity(ctx, r.SeedAPI)
	if err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	if value := current.Data[constants.ClusterIdentity]; value != "" && current.Data[identityOrigin] != constants.ClusterIdentityOriginSeed {
		o.identity = value
	}
	return o, nil
}

// delete waits until the seed is empty, runs the deletion flow, and removes the finalizer.
func (r *reconciler) delete(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(seed, constants.FinalizerGardenerName) {
		return reconcile.Result{}, nil
	}
	status := &statusReporter{
		gardenCache: r.gardenCache, clock: r.Clock, seed: seed, reportsProgress: true, operation: corev1beta1.LastOperationTypeDelete,
	}
	failed := func(err error) (reconcile.Result, error) {
		return reconcile.Result{}, errors.Join(err, status.failed(ctx, err))
	}
	pending, err := r.pendingBeforeDeletion(ctx, seed)
	if err != nil {
		return failed(err)
	}
	if pending != "" {
		return reconcile.Result{RequeueAfter: checkAgainAfter}, status.write(ctx, corev1beta1.LastOperationStateProcessing, 0, pending)
	}
	extensions, err := r.observeExtensions(ctx, seed)
	if err != nil {
		return failed(err)
	}
	withExtensions, err := r.newExtensionDeletion(seed, extensions)
	if err != nil {
		return failed(err)
	}
	if err := status.run(ctx, withExtensions, r.Metrics); err != nil {
		return kube.Result(errors.Join(err, status.failed(ctx, err)))
	}
	// gardener-controller-manager deletes the extension controllers when nothing of them is left.
	if installed, err := r.installed(ctx); err != nil {
		return failed(err)
	} else if installed > 0 {
		return reconcile.Result{RequeueAfter: checkAgainAfter}, status.write(ctx, corev1beta1.LastOperationStateProcessing, 0,
			fmt.Sprintf("Waiting until there are no ControllerInstallations (%d) for the seed.", installed))
	}
	hostsGarden, err := HostsGarden(ctx, r.SeedAPI)
	if err != nil {
		return failed(err)
	}
	f, err := r.newDeletion(seed, hostsGarden)
	if err != nil {
		return failed(err)
	}
	if err := status.run(ctx, f, r.Metrics); err != nil {
		return kube.Result(errors.Join(err, status.failed(ctx, err)))
	}
	// The reports of progress have changed the Seed since it was read, so the finalizer is removed from the latest version.
	return kube.Result(kube.RemoveFinalizer(ctx, r.gardenCache, status.seed, constants.FinalizerGardenerName))
}

// pendingBeforeDeletion returns a sentence about what must be deleted before the Seed. It is empty if the deletion flow may run.
func (r *reconciler) pendingBeforeDeletion(ctx context.Context, seed *corev1beta1.Seed) (string, error) {
	// The label is on those with the seed in their spec or in their status.
	shoots := &corev1beta1.ShootList{}
	if err := r.GardenAPI.List(ctx, shoots, client.MatchingLabels{constants.PrefixSeedName + seed.Name: "true"}, client.Limit(1)); err != nil {
		return "", fmt.Errorf("list shoots: %w", err)
	}
	if len(shoots.Items) > 0 {
		return "Waiting until there are no shoots on the seed.", nil
	}
	buckets := &corev1beta1.BackupBucketList{}
	if err := r.gardenCache.List(ctx, buckets); err != nil {
		return "", fmt.Errorf("list BackupBuckets: %w", err)
	}
	var otherBuckets int
	for _, bucket := range buckets.Items {
		if bucket.Name != backupBucketName(seed) {
			otherBuckets++
		}
	}
	if otherBuckets > 0 {
		return fmt.Sprintf("Waiting until there are no other BackupBuckets (%d) for the seed.", otherBuckets), nil
	}
	return "", nil
}

// installed returns how many ControllerInstallations the seed has.
func (r *reconciler) installed(ctx context.Context) (int, error) {
	installations := &corev1beta1.ControllerInstallationList{}
	if err := r.gardenCache.List(ctx, installations); err != nil {
		return 0, fmt.Errorf("list ControllerInstallations: %w", err)
	}
	return len(installations.Items), nil
}
