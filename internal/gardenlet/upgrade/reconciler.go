package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/gardenlet/credentials"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/guard"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout is the end of a pass: most of it is for pulling the chart.
const passTimeout = 3 * time.Minute

// waitTimeout is how long a guard that does not run, or cannot restore an object, counts as progress.
const waitTimeout = 5 * time.Minute

// confirmAfter is after which time it is checked again whether the Lease in the garden was renewed: the first renewal follows the start at once.
const confirmAfter = 10 * time.Second

const operationForceRedeploy = constants.OperationForceRedeploy

type reconciler struct {
	Values
	gardenCache client.Client
	charts      *chart.Puller
	// mayExist says that the Gardenlet existed since the process started: an operator who deletes it then does not want another one. Only one pass
	// runs at a time.
	mayExist bool
}

// Reconcile brings the gardenlet to the state of its Gardenlet.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object := &seedmanagementv1alpha1.Gardenlet{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, object); err != nil {
		if !apierrors.IsNotFound(err) || r.mayExist {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		err := createOwn(ctx, r.GardenAPI, r.SeedAPI, r.SeedName)
		r.mayExist = err == nil
		return reconcile.Result{}, err
	}
	// The cache may not have the status yet that the last pass has written.
	if err := r.GardenAPI.Get(ctx, req.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil || byOperator(object) {
		return reconcile.Result{}, nil
	}
	r.mayExist = true
	if operates(object, constants.GardenerOperationRenewKubeconfig) {
		if err := r.renewKubeconfig(ctx, object); err != nil {
			return reconcile.Result{}, err
		}
	}
	outcome, err := r.upgrade(ctx, object)
	if err != nil {
		if kube.Routine(err) { // the record has been written by the guard in between, for example
			return kube.Result(err)
		}
		result := err
		if spec := (*specError)(nil); errors.As(err, &spec) {
			result = reconcile.TerminalError(err)
		}
		return reconcile.Result{}, kube.Reported(result, r.report(ctx, object, failed(err)))
	}
	if err := r.report(ctx, object, outcome); err != nil {
		return kube.Result(err)
	}
	if outcome.Status == corev1beta1.ConditionProgressing {
		if !r.ReachesGarden() {
			return reconcile.Result{RequeueAfter: min(r.SyncPeriod, confirmAfter)}, nil
		}
		// Waiting for too long is reported.
		return reconcile.Result{RequeueAfter: min(r.SyncPeriod, waitTimeout)}, nil
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

// operates says whether an operation is requested.
func operates(object *seedmanagementv1alpha1.Gardenlet, operation string) bool {
	return slices.Contains(strings.Split(object.Annotations[constants.GardenerOperation], constants.OperationsSeparator), operation)
}

// renewKubeconfig requests a new certificate for the garden, after which the process restarts. The operation is removed at once: what else fails
// would have each new process request another one.
func (r *reconciler) renewKubeconfig(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet) error {
	if err := r.keepRolledBack(ctx, object); err != nil {
		return err
	}
	if r.KubeconfigSecret == nil {
		logf.FromContext(ctx).Info("Ignoring operation as the gardenlet does not renew its kubeconfig", "operation", constants.GardenerOperationRenewKubeconfig)
	} else {
		logf.FromContext(ctx).Info("Requesting a new client certificate for the garden")
		if err := credentials.RequestRenewal(ctx, r.SeedAPI, *r.KubeconfigSecret); err != nil {
			return err
		}
	}
	return kube.RemoveFromAnnotation(ctx, r.GardenAPI, object, constants.GardenerOperation, constants.OperationsSeparator,
		[]string{constants.GardenerOperationRenewKubeconfig})
}

// keepRolledBack records that a generation does not request what was rolled back again: the API server has raised it for another operation.
func (r *reconciler) keepRolledBack(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet) error {
	last, err := trial.Read(ctx, r.SeedAPI)
	if err != nil || last.State != trial.RolledBack || last.Generation == object.Generation {
		return err
	}
	last.Generation = object.Generation
	return last.Write(ctx, r.SeedAPI)
}

// upgrade deploys the gardenlet if it differs, and returns the condition.
func (r *reconciler) upgrade(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet) (corev1beta1.Condition, error) {
	if err := r.confirm(ctx); err != nil {
		return corev1beta1.Condition{}, err
	}
	desired, err := r.render(ctx, object)
	if err != nil {
		return corev1beta1.Condition{}, err
	}
	// Before the record: a guard that has ended has written its decision.
	state, err := r.guard(ctx)
	if err != nil {
		return corev1beta1.Condition{}, err
	}
	last, err := trial.Read(ctx, r.SeedAPI)
	if err != nil {
		return corev1beta1.Condition{}, err
	}
	o := observed{
		Guard: state, ID: desired.id, Trial: last, Unapproved: object.Annotations[seedmanagementv1alpha1.AnnotationCreatedByGardenlet] == "true",
		// The API server removes the operation reconcile, and raises the generation for it, as for others.
		Retry: last.Generation != object.Generation && !operates(object, constants.GardenerOperationRenewKubeconfig),
	}
	if goOn(o) == "" {
		if o.Differs, err = trial.Differ(ctx, r.SeedAPI, r.SeedAPI, desired.objects); err != nil {
			return corev1beta1.Condition{}, err
		}
	}
	desired.generation = object.Generation
	return r.act(ctx, decide(o), desired, o)
}

// confirm records that the gardenlet that is tried reaches the garden. What else a pass needs, such as a registry, says nothing about that.
func (r *reconciler) confirm(ctx context.Context) error {
	if !r.ReachesGarden() {
		return nil
	}
	last, err := trial.Read(ctx, r.SeedAPI)
	if err != nil || last.State != trial.Trying || last.Applied.IsZero() || last.Confirmed == r.Pod {
		return err
	}
	last.Confirmed = r.Pod
	return last.Write(ctx, r.SeedAPI)
}

// desired is what a Gardenlet requests.
type desired struct {
	// id identifies it, for this and for later releases of the gardenlet.
	id      string
	objects []client.Object
	// lease is the name of the Lease of the leader election. Empty without one.
	lease string
	// url is that of the chart.
	url string
	// generation is that of the Gardenlet.
	generation int64
}

// act does what was decided.
func (r *reconciler) act(ctx context.Context, what action, want *desired, o observed) (corev1beta1.Condition, error) {
	log, last := logf.FromContext(ctx).WithValues("chart", want.url), o.Trial
	none := corev1beta1.Condition{}
	switch what {
	case keep:
		if last.State == trial.Trying {
			return deployed(), nil
		}
		if last.State == trial.Preparing { // the Gardenlet was changed back before anything was applied
			last.State, last.Previous = trial.Succeeded, nil
			if err := last.Write(ctx, r.SeedAPI); err != nil {
				return none, err
			}
		}
		return reconciled(want.url), nil
	case refuse:
		return unapproved(), nil
	case await:
		deploy := r.ensureGuard
		if last.State == trial.Preparing { // there may be the guard of another trial
			deploy = r.deployGuard
		}
		if err := deploy(ctx, o); err != nil {
			return none, err
		}
		return waiting(last, o.Guard, r.Clock.Now()), nil
	case restore:
		if last.Generation != want.generation {
			last.Generation = want.generation
			if err := last.Write(ctx, r.SeedAPI); err != nil {
				return none, err
			}
		}
		// What is not of the chart, the guard has restored; the record could name any object.
		previous, _, err := trial.Of(last.Previous, want.objects, r.SeedAPI.Scheme())
		if err != nil {
			return none, err
		}
		return rolledBack(last.Reason), trial.Restore(ctx, r.SeedAPI, previous)
	case repair:
		log.Info("Applying the objects of the gardenlet again as one differs", "object", o.Differs)
		if err := kube.Apply(ctx, r.SeedAPI, release.FieldOwner, want.objects...); err != nil {
			return none, err
		}
		differs, err := trial.Differ(ctx, r.SeedAPI, r.SeedAPI, want.objects)
		if err != nil || differs == "" {
			return reconciled(want.url), err
		}
		return unsettled(differs), nil
	case prepare, replace:
		log.Info("Preparing to deploy another gardenlet", "release", want.id)
		return progressing("The gardenlet is prepared to be deployed"), r.prepare(ctx, what, want, last)
	case begin:
		log.Info("Deploying another gardenlet", "release", want.id)
		last.State, last.Since, last.Applied, last.Lease = trial.Trying, metav1.NewTime(r.Clock.Now()), metav1.Time{}, want.lease
		if err := last.Write(ctx, r.SeedAPI); err != nil {
			return none, err
		}
	case apply:
		if err := r.ensureGuard(ctx, o); err != nil {
			return none, err
		}
	}
	if err := kube.Apply(ctx, r.SeedAPI, release.FieldOwner, want.objects...); err != nil {
		return none, err
	}
	confirms := last.Confirmed != r.Pod && r.ReachesGarden()
	if last.Applied.IsZero() || confirms {
		if last.Applied.IsZero() {
			last.Applied = metav1.NewTime(r.Clock.Now())
		}
		if confirms {
			last.Confirmed = r.Pod
		}
		if err := last.Write(ctx, r.SeedAPI); err != nil {
			return none, err
		}
	}
	return waiting(last, o.Guard, r.Clock.Now()), nil
}

// prepare records what there is now, unless that is a release that is tried itself, and deploys the guard.
func (r *reconciler) prepare(ctx context.Context, what action, want *desired, last *trial.Trial) error {
	current, err := trial.Snapshot(ctx, r.SeedAPI, r.SeedAPI.Scheme(), want.objects)
	if err != nil {
		return err
	}
	if what == prepare {
		last.Previous = current
	} else {
		last.Keep(current)
	}
	last.ID, last.Generation, last.State, last.Reason, last.Lease = want.id, want.generation, trial.Preparing, "", want.lease
	last.Since, last.Applied, last.Confirmed = metav1.NewTime(r.Clock.Now()), metav1.Time{}, ""
	// Before the guard, which ends if there is nothing to be tried.
	if err := last.Write(ctx, r.SeedAPI); err != nil {
		return err
	}
	return r.deployGuard(ctx, observed{Trial: last})
}

// ensureGuard deploys the guard if there is none: without it, an update is neither confirmed nor rolled back. One that runs stays as it is.
func (r *reconciler) ensureGuard(ctx context.Context, o observed) error {
	if o.Guard.Exists {
		return nil
	}
	return r.deployGuard(ctx, o)
}

// deployGuard deploys the process that decides about the new gardenlet.
func (r *reconciler) deployGuard(ctx context.Context, o observed) error {
	previous := o.Trial.Previous
	role, err := guard.Role(previous)
	if err != nil {
		return err
	}
	if err := kube.Apply(ctx, r.SeedAPI, release.FieldOwner, role); err != nil {
		return err
	}
	applied := &rbacv1.ClusterRole{}
	if err := r.SeedAPI.Get(ctx, client.ObjectKeyFromObject(role), applied); err != nil {
		return fmt.Errorf("read ClusterRole %q: %w", role.Name, err)
	}
	objects, err := guard.Objects(previous, applied.UID)
	if err != nil {
		return err
	}
	return kube.Apply(ctx, r.SeedAPI, release.FieldOwner, objects...)
}

// guard reads the guard. One without its ClusterRole ends, as it belongs to that.
func (r *reconciler) guard(ctx context.Context) (guardState, error) {
	role, deployment := &rbacv1.ClusterRole{}, &appsv1.Deployment{}
	if err := r.SeedAPI.Get(ctx, client.ObjectKey{Name: gardenlet.GuardRole}, role); client.IgnoreNotFound(err) != nil {
		return guardState{}, fmt.Errorf("read ClusterRole %q: %w", gardenlet.GuardRole, err)
	}
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: gardenlet.GuardName}
	if err := r.SeedAPI.Get(ctx, key, deployment); client.IgnoreNotFound(err) != nil {
		return guardState{}, fmt.Errorf("read Deployment %q: %w", key, err)
	}
	return guardOf(role, deployment), nil
}

// guardOf returns what a ClusterRole and a Deployment, which are empty if they do not exist, say about the guard.
func guardOf(role *rbacv1.ClusterRole, deployment *appsv1.Deployment) guardState {
	owned := slices.ContainsFunc(deployment.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == role.UID })
	if role.UID == "" || !owned || role.DeletionTimestamp != nil || deployment.DeletionTimestamp != nil {
		return guardState{Unready: fmt.Errorf("Deployment %q does not exist", gardenlet.GuardName)}
	}
	return guardState{Exists: true, Unready: kube.DeploymentComplete(deployment)}
}

// render pulls the chart of a Gardenlet and renders it.
func (r *reconciler) render(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet) (*desired, error) {
	config, err := release.ReadConfiguration(object)
	if err != nil {
		return nil, &specError{err}
	}
	running, err := release.ReadRunning(ctx, r.SeedAPI)
	if err != nil {
		return nil, err
	}
	if _, err := config.Connect(running.GardenAddress); err != nil {
		return nil, &specError{err}
	}
	repository := &object.Spec.Deployment.Helm.OCIRepository
	archive, err := r.charts.PullFor(ctx, r.GardenAPI, repository)
	if err != nil {
		return nil, &registryError{err}
	}
	values := release.Values{ImageVectorOverwrite: running.ImageVectorOverwrite, ComponentImageVectorOverwrites: running.ComponentImageVectorOverwrites}
	if running.Chart == workload.Checksum(string(archive)) {
		values.Image = running.Image // it stays as long as the chart does
	}
	if values.HostsGarden, err = r.HostsGarden(ctx); err != nil {
		return nil, err
	}
	rendered, err := values.Chart(object, config)
	if err != nil {
		return nil, &specError{err}
	}
	version, err := r.SeedVersion.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read version of the seed: %w", err)
	}
	objects, err := release.Objects(archive, *version, rendered)
	if err != nil {
		return nil, &specError{err}
	}
	id, err := identify(object, archive)
	if err != nil {
		return nil, err
	}
	return &desired{id: id, objects: objects, lease: config.Lease(), url: chart.URL(repository)}, nil
}

// identify returns what identifies a release: the chart, and what the Gardenlet says.
func identify(object *seedmanagementv1alpha1.Gardenlet, archive []byte) (string, error) {
	deployment := object.Spec.Deployment.DeepCopy()
	var config any
	if raw := object.Spec.Config; raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, &config); err != nil { // so that the order of fields does not matter
			return "", fmt.Errorf("spec.config: %w", err)
		}
	}
	data, err := json.Marshal([]any{deployment, config, workload.Checksum(string(archive))})
	if err != nil {
		return "", err
	}
	return workload.Checksum(string(data)), nil
}
