package system

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// flowTimeout is the end of one run of the flow.
	flowTimeout = 5 * time.Minute
	// reportTimeout is what a write of the status may take, also after the end of a run.
	reportTimeout = 5 * time.Second
	// lookAgain is when to look whether the shoots on a Seed that is deleted are gone. Their own controller has them in its cache, we do not.
	lookAgain = 15 * time.Second
	// owner is the field manager.
	owner = "gardenlet"
)

type reconciler struct {
	Values
	gardenClient client.Client
	// live reads what is not worth a cache.
	live client.Reader
}

// Reconcile makes a seed be as every seed is.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.gardenClient.Get(ctx, req.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if seed.DeletionTimestamp != nil {
		return r.delete(ctx, seed)
	}
	if err := kube.AddFinalizer(ctx, r.gardenClient, seed, constants.FinalizerGardenerName); err != nil {
		return kube.Result(err)
	}
	if operation := seed.Annotations[constants.GardenerOperation]; operation != "" {
		if err := r.operate(ctx, seed, operation); err != nil {
			return kube.Result(err)
		}
	}
	f, err := r.newFlow(seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	observed, err := r.observe(ctx, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	status := &reporter{client: r.gardenClient, clock: r.Clock, seed: seed, loud: unfinished(seed, r.Gardener)}
	if err := status.run(ctx, f, r.Metrics); err != nil {
		return kube.Result(errors.Join(err, status.failed(ctx, err)))
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, status.succeeded(ctx, observed)
}

// operate does what an annotation of the Seed asks for, and takes it off.
func (r *reconciler) operate(ctx context.Context, seed *corev1beta1.Seed, operation string) error {
	log := logf.FromContext(ctx)
	switch operation {
	case constants.GardenerOperationRenewKubeconfig:
		if r.KubeconfigSecret == nil {
			log.Info("Ignoring operation as the access to the garden is not the gardenlet's own", "operation", operation)
			break
		}
		log.Info("Asking for new credentials for the garden")
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = r.KubeconfigSecret.Namespace, r.KubeconfigSecret.Name
		err := kube.PatchMetadata(ctx, r.SeedClient, secret, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, constants.KubeconfigSecretOperationRenew)
		})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	case constants.SeedOperationRenewGardenAccessSecrets:
		log.Info("Asking for new tokens for the garden")
		if err := r.renewTokens(ctx); err != nil {
			return err
		}
	case constants.GardenerOperationReconcile:
	default:
		return nil // not for us
	}
	return kube.PatchMetadata(ctx, r.gardenClient, seed, func(o *metav1.PartialObjectMetadata) {
		delete(o.Annotations, constants.GardenerOperation)
	})
}

// renewTokens makes the token requestor think that the tokens for the garden are due.
func (r *reconciler) renewTokens(ctx context.Context) error {
	secrets := &corev1.SecretList{}
	if err := r.SeedClient.List(ctx, secrets, client.MatchingLabels{
		resourcesv1alpha1.ResourceManagerClass:   resourcesv1alpha1.ResourceManagerClassGarden,
		resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
	}); err != nil {
		return fmt.Errorf("list access secrets: %w", err)
	}
	var errs []error
	for i := range secrets.Items {
		errs = append(errs, client.IgnoreNotFound(kube.PatchMetadata(ctx, r.SeedClient, &secrets.Items[i], func(o *metav1.PartialObjectMetadata) {
			delete(o.Annotations, resourcesv1alpha1.ServiceAccountTokenRenewTimestamp)
		})))
	}
	return errors.Join(errs...)
}

// observe reads what the status says about the seed.
func (r *reconciler) observe(ctx context.Context, seed *corev1beta1.Seed) (*observation, error) {
	version, err := r.SeedVersion.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read version of the seed: %w", err)
	}
	o := &observation{
		gardener: r.Gardener, version: version.GitVersion, capacity: r.Capacity, allocatable: allocatable(r.Capacity, r.Reserved),
		generation: seed.Generation, expiry: r.CertificateExpiry,
	}
	if garden, err := identity(ctx, r.live); err != nil {
		return nil, fmt.Errorf("garden: %w", err)
	} else if garden.Data[constants.ClusterIdentity] != "" {
		o.identity = seedIdentity(garden.Data[constants.ClusterIdentity], seed.Name)
	}
	// A seed that is a shoot or the garden itself has its identity from there.
	own, err := identity(ctx, r.SeedClient)
	if err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	if value := own.Data[constants.ClusterIdentity]; value != "" && own.Data[identityOrigin] != constants.ClusterIdentityOriginSeed {
		o.identity = value
	}
	return o, nil
}

// identity reads the ConfigMap with the identity of a cluster. It is empty if there is none.
func identity(ctx context.Context, c client.Reader) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity}, configMap)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", metav1.NamespaceSystem, constants.ClusterIdentity, err)
	}
	return configMap, nil
}

// delete lets a Seed go when nothing is left on it.
func (r *reconciler) delete(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(seed, constants.FinalizerGardenerName) {
		return reconcile.Result{}, nil
	}
	left, err := r.left(ctx, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	status := &reporter{client: r.gardenClient, clock: r.Clock, seed: seed, loud: true, operation: corev1beta1.LastOperationTypeDelete}
	if left != "" {
		return reconcile.Result{RequeueAfter: lookAgain}, status.write(ctx, corev1beta1.LastOperationStateProcessing, 0, left)
	}
	f, err := r.newDeletion(seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := status.run(ctx, f, r.Metrics); err != nil {
		return kube.Result(errors.Join(err, status.failed(ctx, err)))
	}
	// The reports of progress have changed the Seed since it was read.
	return kube.Result(kube.RemoveFinalizer(ctx, r.gardenClient, status.seed, constants.FinalizerGardenerName))
}

// left says what is still on a seed, in one sentence. It is empty if there is nothing.
func (r *reconciler) left(ctx context.Context, seed *corev1beta1.Seed) (string, error) {
	var shoots int
	for _, key := range []string{"spec.seedName", "status.seedName"} {
		list := &corev1beta1.ShootList{}
		if err := r.live.List(ctx, list, client.MatchingFields{key: seed.Name}, client.Limit(1)); err != nil {
			return "", fmt.Errorf("list shoots: %w", err)
		}
		shoots += len(list.Items)
	}
	if shoots > 0 {
		return "Waiting until there are no shoots on the seed.", nil
	}
	installations, buckets := &corev1beta1.ControllerInstallationList{}, &corev1beta1.BackupBucketList{}
	if err := errors.Join(r.gardenClient.List(ctx, installations), r.gardenClient.List(ctx, buckets)); err != nil {
		return "", fmt.Errorf("list what is on the seed: %w", err)
	}
	var foreign int
	for _, bucket := range buckets.Items {
		if bucket.Name != bucketName(seed) {
			foreign++
		}
	}
	if n := len(installations.Items); n > 0 || foreign > 0 {
		return fmt.Sprintf("Waiting until there are no ControllerInstallations (%d) and no other BackupBuckets (%d) for the seed.", n, foreign), nil
	}
	return "", nil
}

// run runs a flow and reports its progress.
func (s *reporter) run(ctx context.Context, f *flow.Flow, metrics *flow.Metrics) error {
	ctx, cancel := context.WithTimeoutCause(ctx, flowTimeout, fmt.Errorf("not done within %s", flowTimeout))
	defer cancel()
	offer, stop := flow.Latest(func(p flow.Progress) { s.progress(ctx, p) })
	_, err := f.Run(ctx, flow.Options{
		Progress: offer, Metrics: metrics, Clock: s.clock, Ended: flow.LogTimings(logf.FromContext(ctx).V(1), f.Name()),
	})
	stop()
	return err
}
