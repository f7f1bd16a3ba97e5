package managedseed

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/access"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/pkg/helm"
)

type reconciler struct {
	Values
	gardenCache client.Client
	recorder    events.EventRecorder
	watches     *gardenletWatches
	checks      trial.Checks
	// parent is what gardenlets inherit.
	parent map[string]any
	// archive is the chart of the gardenlet, of the release of this process.
	archive []byte
}

// Reconcile deploys the gardenlet of a ManagedSeed, or deletes it with its Seed.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, object); err != nil || object.Spec.Shoot == nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot := &corev1beta1.Shoot{}
	err := r.gardenCache.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: object.Spec.Shoot.Name}, shoot)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || ptr.Deref(shoot.Status.SeedName, "") != r.SeedName {
		r.watches.end(req.NamespacedName)
		r.checks.Forget(req.NamespacedName)
		return reconcile.Result{RequeueAfter: r.Config.WaitSyncPeriod.Duration}, nil // the Shoot is new, or another gardenlet is responsible
	}
	// The cache may not have the status yet that the last pass has written.
	if err := r.GardenAPI.Get(ctx, req.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil {
		return r.delete(ctx, object, shoot)
	}
	if !controllerutil.ContainsFinalizer(object, constants.FinalizerGardenerName) {
		if err := kube.AddFinalizer(ctx, r.gardenCache, object, constants.FinalizerGardenerName); err != nil {
			return kube.Result(err)
		}
		// The writes below need the new version, which the cache has in a moment.
		if err := r.GardenAPI.Get(ctx, req.NamespacedName, object); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	if !shootReconciled(shoot) {
		err := r.report(ctx, object, shootCondition(false, shoot))
		return waiting(r.Config.WaitSyncPeriod.Duration, err)
	}
	seed, current, err := r.deploy(ctx, object, shoot)
	if errors.Is(err, errUnconfirmed) {
		conditions := []corev1beta1.Condition{shootCondition(true, shoot)}
		if seed == nil {
			conditions = append(conditions, undeployed())
		}
		return waiting(unconfirmedRecheck, r.report(ctx, object, conditions...))
	}
	if err != nil {
		if kube.Contested(err) {
			return kube.Result(err)
		}
		r.watches.end(req.NamespacedName) // its client may have credentials that are not valid any more
		return reconcile.Result{}, errors.Join(err, r.report(ctx, object, shootCondition(true, shoot), failed(err)))
	}
	if err := r.report(ctx, object, shootCondition(true, shoot), registered(object.Name, seed), health(current, r.Clock.Now())); err != nil {
		return kube.Result(err)
	}
	if !current.Renews {
		err = r.renewed(ctx, object)
	}
	return waiting(current.recheckIn(r.Config.SyncPeriod.Duration), err)
}

// unconfirmedRecheck is when it is checked again whether the update of this gardenlet works: that takes one to ten minutes.
const unconfirmedRecheck = time.Minute

// errUnconfirmed says that this gardenlet may be rolled back.
var errUnconfirmed = errors.New("it is not known yet whether an update of this gardenlet works")

// confirmedHere returns errUnconfirmed while this gardenlet may be rolled back, by itself or by that which deploys it: those that it deploys get its
// release, and would be updated twice, with an image of one release and the chart of another one in between.
func confirmedHere(ctx context.Context, seedAPI client.Reader) error {
	for _, name := range []string{trial.SecretName, recordName} {
		t, err := trial.ReadFrom(ctx, seedAPI, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name})
		if err != nil {
			return err
		}
		switch t.State {
		case trial.Preparing, trial.Trying, trial.RollingBack:
			if len(t.Previous) > 0 {
				return errUnconfirmed
			}
		case trial.Succeeded, trial.RolledBack:
		}
	}
	return nil
}

// waiting returns when to check again, unless there is an error.
func waiting(period time.Duration, err error) (reconcile.Result, error) {
	if err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: period}, nil
}

// seed returns the Seed of a ManagedSeed, or nil if it does not exist.
func (r *reconciler) seed(ctx context.Context, name string) (*corev1beta1.Seed, error) {
	seed := &corev1beta1.Seed{}
	if err := r.GardenAPI.Get(ctx, client.ObjectKey{Name: name}, seed); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Seed %q: %w", name, err)
	}
	return seed, nil
}

// connect returns a client for a shoot.
func (r *reconciler) connect(ctx context.Context, shoot *corev1beta1.Shoot) (client.WithWatch, error) {
	if _, err := observed.ReadNamespace(ctx, r.SeedAPI, shoot, shoot.Status.TechnicalID); err != nil {
		return nil, err
	}
	kubeconfig, err := access.Kubeconfig(ctx, access.Values{
		SeedAPI: r.SeedAPI, Namespace: shoot.Status.TechnicalID, Host: kubeapiserver.Name + "." + shoot.Status.TechnicalID + ".svc",
		Status: shoot.Status.Credentials, Now: r.Clock.Now(),
	})
	if err != nil {
		return nil, fmt.Errorf("create kubeconfig for the shoot: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig for the shoot is invalid") // the error may quote it
	}
	shootClient, err := r.Connect(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the shoot: %w", err)
	}
	return shootClient, nil
}

// deploy deploys the gardenlet of a ManagedSeed, and returns its Seed, or nil if it is not registered yet, and what is known about the gardenlet. With
// errUnconfirmed, it has changed nothing.
func (r *reconciler) deploy(
	ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, shoot *corev1beta1.Shoot,
) (seed *corev1beta1.Seed, current deployed, err error) {
	seed, err = r.seed(ctx, object.Name)
	if err != nil {
		return nil, deployed{}, err
	}
	shootClient := r.watches.client(client.ObjectKeyFromObject(object))
	if shootClient == nil {
		if shootClient, err = r.connect(ctx, shoot); err != nil {
			return nil, deployed{}, err
		}
	}
	running, err := release.RunsIn(ctx, shootClient)
	if err != nil {
		return nil, deployed{}, err
	}
	if running.Seed != "" && running.Seed != object.Name {
		return nil, deployed{}, fmt.Errorf("the gardenlet of seed %q already runs in shoot %q: it cannot be seed %q too", running.Seed, shoot.Name, object.Name)
	}
	d, err := r.prepare(ctx, object)
	if err != nil {
		return nil, deployed{}, err
	}
	// After the Deployment of this gardenlet was read, whose image counts.
	if err := confirmedHere(ctx, r.SeedAPI); err != nil {
		return seed, deployed{}, err
	}
	annotations := map[string]string{}
	if annotations[annotationBackupChecksum], err = r.checkSeed(ctx, d.config, shoot.Status.TechnicalID); err != nil {
		return nil, deployed{}, err
	}
	// Errors of charts quote values. What is wrong with them is found before they have credentials, and before anything is changed.
	requested, err := r.render(d, shoot, annotations)
	if err != nil {
		return nil, deployed{}, err
	}
	if annotations[annotationBootstrapped], err = bootstrapped(ctx, shootClient); err != nil {
		return nil, deployed{}, err
	}
	if err := ensureNamespace(ctx, shootClient); err != nil {
		return nil, deployed{}, err
	}
	credentials, err := r.bootstrap(ctx, object, shootClient, d.garden, seed, annotations[annotationBootstrapped])
	if err != nil {
		return nil, deployed{}, err
	}
	if len(credentials.kubeconfig) > 0 {
		if err := d.config.Set(string(credentials.kubeconfig), "gardenClientConnection", "bootstrapKubeconfig", "kubeconfig"); err != nil {
			return nil, deployed{}, err
		}
	}
	if credentials.replaced {
		annotations[annotationBootstrapped] = r.Clock.Now().UTC().Format(time.RFC3339)
	}
	objects, err := r.render(d, shoot, annotations)
	if err != nil {
		return nil, deployed{}, errors.New("the chart of the gardenlet cannot be rendered with a bootstrap kubeconfig")
	}
	logf.FromContext(ctx).V(1).Info("Deploying gardenlet", "bootstraps", len(credentials.kubeconfig) > 0)
	want := &rollout{
		shootClient: shootClient, object: object, seed: seed, lease: d.config.Lease(), bootstrapped: annotations[annotationBootstrapped],
	}
	if want.id, err = identify(requested); err != nil {
		return nil, deployed{}, err
	}
	// The credentials are no part of what is tried, or rolled back: those before may be used up.
	var secret []client.Object
	secret, want.objects = split(objects, d.garden.Bootstrap)
	if err := kube.Apply(ctx, shootClient, release.FieldOwner, secret...); err != nil {
		return nil, deployed{}, err
	}
	if current, err = r.rollOut(ctx, want); err != nil {
		return nil, deployed{}, err
	}
	current.Renews = credentials.renews
	r.watches.ensure(ctx, client.ObjectKeyFromObject(object), shootClient)
	return seed, current, nil
}

// desired is the gardenlet of a ManagedSeed.
type desired struct {
	gardenlet *seedmanagementv1alpha1.Gardenlet
	config    release.Configuration
	garden    release.Connection
	// parent is how the gardenlet of this process is deployed.
	parent release.Running
}

// prepare returns the gardenlet of a ManagedSeed with its configuration.
func (r *reconciler) prepare(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed) (d desired, err error) {
	if d.parent, err = release.ReadRunning(ctx, r.SeedAPI); err != nil {
		return d, err
	}
	if d.gardenlet, err = asGardenlet(object, r.parent); err != nil {
		return d, err
	}
	if d.config, err = release.ReadConfiguration(d.gardenlet); err != nil {
		return d, err
	}
	d.garden, err = d.config.Connect(r.Garden.GetConfig().Host)
	return d, err
}

// render renders the chart of a gardenlet, with the image and the image vectors of this one.
func (r *reconciler) render(d desired, shoot *corev1beta1.Shoot, annotations map[string]string) ([]client.Object, error) {
	adapt(&d.gardenlet.Spec.Deployment.GardenletDeployment, shoot, annotations)
	values, err := release.Values{
		Image: d.parent.Image, ImageVectorOverwrite: d.parent.ImageVectorOverwrite, ComponentImageVectorOverwrites: d.parent.ComponentImageVectorOverwrites,
	}.Chart(d.gardenlet, d.config)
	if err != nil {
		return nil, err
	}
	kubernetes, err := helm.KubernetesVersion(shoot.Spec.Kubernetes.Version)
	if err != nil {
		return nil, fmt.Errorf("version of the Shoot: %w", err)
	}
	return release.Objects(r.archive, kubernetes, values)
}

// checkSeed returns an error if a shoot cannot be the Seed of a configuration, and a checksum of the credentials for backups, which is empty without
// backups.
func (r *reconciler) checkSeed(ctx context.Context, config release.Configuration, controlPlane string) (string, error) {
	spec, err := seedSpec(config)
	if err != nil {
		return "", err
	}
	if wantsVPA(spec) {
		key := client.ObjectKey{Namespace: controlPlane, Name: verticalpodautoscaler.AdmissionController}
		if err := r.SeedAPI.Get(ctx, key, &appsv1.Deployment{}); err == nil {
			return "", errors.New("spec.gardenlet.config.seedConfig.spec.settings.verticalPodAutoscaler.enabled: must be false, as the Shoot has a vertical pod autoscaler")
		} else if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("read Deployment %q: %w", key, err)
		}
	}
	key := backupSecret(spec)
	if key.Name == "" {
		return "", nil
	}
	secret := &corev1.Secret{}
	if err := r.GardenAPI.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("read Secret %q with the credentials for backups: %w", key, err)
	}
	return workload.ChecksumOfData(secret.Data)
}

// backupSecret returns the Secret with the credentials for backups of a Seed. Its name is empty if there is none.
func backupSecret(spec *corev1beta1.SeedSpec) client.ObjectKey {
	if spec.Backup == nil || spec.Backup.CredentialsRef == nil || spec.Backup.CredentialsRef.Kind != "Secret" {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: spec.Backup.CredentialsRef.Namespace, Name: spec.Backup.CredentialsRef.Name}
}

// bootstrapped returns when a gardenlet last got new bootstrap credentials, by its pods.
func bootstrapped(ctx context.Context, shootClient client.Client) (string, error) {
	deployment, key := &appsv1.Deployment{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: gardenlet.Name}
	if err := shootClient.Get(ctx, key, deployment); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read Deployment %q: %w", key, err)
	}
	return deployment.Spec.Template.Annotations[annotationBootstrapped], nil
}

// ensureNamespace creates the namespace of the gardenlet.
func ensureNamespace(ctx context.Context, shootClient client.Client) error {
	return kube.Apply(ctx, shootClient, release.FieldOwner, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: constants.GardenNamespace, Labels: map[string]string{constants.GardenRole: constants.GardenRoleGarden},
	}})
}
